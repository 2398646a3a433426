// Which rounds' results of a benchmark may be compared, as published. Data with its source.

#ifndef COMMON_ANALYSIS_COMPATIBILITY_H_
#define COMMON_ANALYSIS_COMPATIBILITY_H_

#include <string>

#include "absl/strings/string_view.h"

namespace assay::analysis {

// Where the table stands and which state of it is meant.
inline constexpr absl::string_view kCompatibilitySource =
    "MLPerf Compatibility Table, HPC (github.com/mlcommons/policies, "
    "MLPerf_Compatibility_Table.adoc, 03545d2)";

// Why results of `benchmark` of two rounds (hpc-1.0.0) may not be compared, in words; empty: they
// may. A round may be compared with itself; a round that the table lacks with no other.
std::string WhyNotComparable(absl::string_view benchmark, absl::string_view from_round,
                             absl::string_view to_round);

}  // namespace assay::analysis

#endif  // COMMON_ANALYSIS_COMPATIBILITY_H_
