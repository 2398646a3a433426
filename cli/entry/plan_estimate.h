// What the runs of a planned entry will take, by those of the same kind that have ended here.

#ifndef CLI_ENTRY_PLAN_ESTIMATE_H_
#define CLI_ENTRY_PLAN_ESTIMATE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "assay/v1/resources.pb.h"

#include "common/client/client.h"
#include "common/client/json.h"

namespace assay::cli {

// A run that reached its target.
struct EarlierRun {
  std::string entry;   // e-42
  double minutes = 0;  // that it held its nodes for
  std::optional<double> energy_joules;
  std::optional<double> staging_seconds;  // of the minutes, where it has staged
};

// Of the newest that the caller may see: on the spec's system, with its benchmark, dataset and
// number of nodes. Blocks; fails as Client::Call does.
absl::StatusOr<std::vector<EarlierRun>> FindEarlierRuns(const client::Client& client,
                                                        const v1::SubmissionSpec& spec);

// The estimate for an entry as `spec` (with its defaults filled in) asks for it, with its
// "summary"; without `earlier` the summary alone, which says what is unknown. Runs of a set follow
// each other; instances of a throughput set run side by side. Replacements are not counted. Pure.
client::Json EstimateJson(const v1::SubmissionSpec& spec, const std::vector<EarlierRun>& earlier);

}  // namespace assay::cli

#endif  // CLI_ENTRY_PLAN_ESTIMATE_H_
