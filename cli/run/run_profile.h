// What a run did with the machine, as its trainer counted it (worker/trainer/profile.h): the last
// record of that kind among the run's events.

#ifndef CLI_RUN_RUN_PROFILE_H_
#define CLI_RUN_RUN_PROFILE_H_

#include <string>

#include "cli/terminal/print.h"
#include "common/client/run_profile.h"

namespace assay::cli {

using client::LatestProfile;
using client::ParseProfile;

// "profile epoch 3  152.3 GFLOP/s  28% of the peak"
std::string FormatProfile(const Json& profile);

// Makes the profile a member of the run, with the lines and the table that show it.
void AddProfile(const Json& profile, ShowView* view);

}  // namespace assay::cli

#endif  // CLI_RUN_RUN_PROFILE_H_
