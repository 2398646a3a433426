// How the first touch of a run's data was seen on its nodes, and what could have been before it.

#ifndef COMMON_CLIENT_TOUCH_RECORDS_H_
#define COMMON_CLIENT_TOUCH_RECORDS_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "assay/v1/resources.pb.h"

#include "common/client/client.h"
#include "common/client/json.h"

namespace assay::client {

// What each node wrote down (touch_N.json and observed_N.json of the run's files), with its number
// as `node`, its stamp by the clock that stamps the log with a bound (`log_clock_us`,
// `log_clock_error_us`: null if not known) and all of it as a `sentence`, whose time is of `zone`;
// of a node that has seen nothing that it is self-reported. An empty list if the run has no such
// files. Downloads them. Files that are no JSON are left out.
absl::StatusOr<Json> TouchesOf(const Client& client, const v1::Run& run, absl::TimeZone zone);

// What could have been before the touches, unseen: rows of node, code and why.
Json TouchHolesOf(const Json& touches);

// Of touches, at least one: a run is as good as its weakest node; of several the first.
const Json& WeakestTouch(const Json& touches);

}  // namespace assay::client

#endif  // COMMON_CLIENT_TOUCH_RECORDS_H_
