// The reference convergence points as they were published with each round (rules specification,
// appendix B). Plain data; rcp.h derives what is compared with.

#ifndef COMMON_RULES_RCP_TABLES_H_
#define COMMON_RULES_RCP_TABLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace assay::rules {

// What the reference did with one batch size.
struct ReferenceRecord {
  std::string name;
  int64_t batch_size = 0;      // global
  std::vector<double> epochs;  // to convergence, one for each run; samples for OpenFold
};

// Those of a benchmark under a rule set ("hpc-2.0.0"), by rising batch size. Empty where there are
// none: round 0.7 and facilities' own rounds.
std::vector<ReferenceRecord> ReferenceRecords(absl::string_view rule_set,
                                              absl::string_view benchmark);

}  // namespace assay::rules

#endif  // COMMON_RULES_RCP_TABLES_H_
