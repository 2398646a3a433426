// What a run did with the machine, as its trainer counted it (worker/trainer/profile.h): the last
// record of that kind among the run's events.

#ifndef CLI_RUN_RUN_PROFILE_H_
#define CLI_RUN_RUN_PROFILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "assay/v1/resources.pb.h"

#include "cli/terminal/interrupt.h"
#include "cli/terminal/print.h"
#include "common/client/cancellation.h"
#include "common/client/client.h"

namespace assay::cli {

// The profile in the text of a PROGRESS event; null if it is another record.
Json ParseProfile(absl::string_view text);

// "profile epoch 3  152.3 GFLOP/s  28% of the peak"
std::string FormatProfile(const Json& profile);

// The latest profile of `run`; null if it has none. Reads its events from the end.
absl::StatusOr<Json> LatestProfile(const client::Client& client, client::Cancellation* cancellation,
                                   const v1::Run& run);

// Makes the profile a member of the run, with the lines and the table that show it.
void AddProfile(const Json& profile, ShowView* view);

}  // namespace assay::cli

#endif  // CLI_RUN_RUN_PROFILE_H_
