// How the first touch of a run's data was seen on its nodes, and what could have been before it.

#ifndef CLI_RUN_RUN_TOUCH_H_
#define CLI_RUN_RUN_TOUCH_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "assay/v1/resources.pb.h"

#include "cli/terminal/print.h"
#include "common/client/client.h"

namespace assay::cli {

// What each node wrote down (touch_N.json and observed_N.json of the run's files), with its number
// as `node`, its stamp by the clock that stamps the log with a bound (`log_clock_us`,
// `log_clock_error_us`: null if not known) and all of it as a `sentence`, whose time is of `zone`;
// of a node that has seen nothing that it is self-reported. An empty list if the run has no such
// files. Downloads them. Files that are no JSON are left out.
absl::StatusOr<Json> TouchesOf(const client::Client& client, const v1::Run& run,
                               absl::TimeZone zone);

// Makes them members of the run, with a table, and as another what their holes mean; the sentence
// of the weakest node stands for the run. At least one.
void AddTouches(Json touches, ShowView* view);

}  // namespace assay::cli

#endif  // CLI_RUN_RUN_TOUCH_H_
