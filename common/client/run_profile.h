// What a run did with the machine, as its trainer counted it (worker/trainer/profile.h): the last
// record of that kind among the run's events.

#ifndef COMMON_CLIENT_RUN_PROFILE_H_
#define COMMON_CLIENT_RUN_PROFILE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "assay/v1/resources.pb.h"

#include "common/client/cancellation.h"
#include "common/client/client.h"
#include "common/client/json.h"

namespace assay::client {

// The profile in the text of a PROGRESS event; null if it is another record.
Json ParseProfile(absl::string_view text);

// The latest profile of `run`; null if it has none. Reads its events from the end.
absl::StatusOr<Json> LatestProfile(const Client& client, Cancellation* cancellation,
                                   const v1::Run& run);

}  // namespace assay::client

#endif  // COMMON_CLIENT_RUN_PROFILE_H_
