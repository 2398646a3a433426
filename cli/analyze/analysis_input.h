// What assay analyze works on: entries from folders of results, or from the coordinator, each with
// the times of its runs read from their logs.

#ifndef CLI_ANALYZE_ANALYSIS_INPUT_H_
#define CLI_ANALYZE_ANALYSIS_INPUT_H_

#include <vector>

#include "absl/status/statusor.h"

#include "cli/command/command.h"
#include "cli/command/context.h"
#include "cli/rules/rule_sets.h"
#include "common/analysis/entry.h"

namespace assay::cli {

struct AnalysisInput {
  RuleSetRef rules;
  bool is_round_known = true;  // false: the rules are another round's, for lack of this one's
  std::vector<analysis::Characteristics> entries;  // by benchmark; within it as they were found
};

// Folders below the paths given, entries by id, or all entries of --round on the coordinator; of
// those what --benchmark and --division leave. INVALID_ARGUMENT if a folder is given without a
// round or entries are of several rounds; NOT_FOUND if nothing is left.
absl::StatusOr<AnalysisInput> ReadAnalysisInput(Context* context, const Arguments& arguments);

// The positional and the options that ReadAnalysisInput reads.
Positional AnalysisPositional();
std::vector<Option> AnalysisOptions();

}  // namespace assay::cli

#endif  // CLI_ANALYZE_ANALYSIS_INPUT_H_
