// Entries as common/analysis looks at them, with the times of their runs read from the logs: from
// the coordinator, or from folders of results.

#ifndef COMMON_CLIENT_ANALYSIS_ENTRY_H_
#define COMMON_CLIENT_ANALYSIS_ENTRY_H_

#include "absl/status/statusor.h"

#include "assay/v1/resources.pb.h"

#include "common/analysis/entry.h"
#include "common/client/client.h"
#include "common/package/results_tree.h"
#include "common/rules/ruleset.h"

namespace assay::client {

// The coordinator's entry with the runs that its score is of (RunsThatCount) and that left a log;
// its machine is what the first of these says. Times do not depend on the rules, so those of
// another round do. DATA_LOSS if a log is damaged; else the coordinator's error. Downloads the
// logs, one after the other. Thread-safe.
absl::StatusOr<analysis::Entry> ReadAnalysisEntry(const Client& client,
                                                  const v1::Submission& submission,
                                                  const rules::RuleSet& rules);

// A judged folder, whose logs must still be there, as an entry. Its machine is what the system
// description says; of a weak folder, and without a description, what the logs say. Pure.
analysis::Entry AnalysisEntryOf(const package::JudgedFolder& judged);

}  // namespace assay::client

#endif  // COMMON_CLIENT_ANALYSIS_ENTRY_H_
