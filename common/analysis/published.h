// The numbers that the MLPerf HPC paper prints about round v0.7, each beside what the published
// logs give, digit by digit, and why the few that differ do.

#ifndef COMMON_ANALYSIS_PUBLISHED_H_
#define COMMON_ANALYSIS_PUBLISHED_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/analysis/entry.h"

namespace assay::analysis {

struct PublishedNumber {
  std::string place;               // "Table 5", "section 4.1.1"
  std::string subject;             // "CosmoFlow/ABCI-512"; empty where it is about several entries
  std::string quantity;            // "staging mean [min]"
  std::string printed;             // "0.76"
  std::optional<double> computed;  // none: the entry is not among those given
  std::string rounded;             // `computed` to the digits of `printed`
  bool is_equal = false;
  std::string why;  // of a difference
};

// All 124, in the order of the paper. `entries`: those of round v0.7.
std::vector<PublishedNumber> CompareWithPaper(std::span<const Characteristics> entries);

// How the paper calls a v0.7 entry ("Piz-Daint-128"); empty for others.
std::string PaperName(const Entry& entry);

// What a reader of the paper's `table` ("Table 5") should know about an entry's row here: why a
// cell differs. Empty where all cells agree.
std::string DifferenceFrom(absl::string_view table, const Characteristics& entry,
                           std::span<const PublishedNumber> numbers);

}  // namespace assay::analysis

#endif  // COMMON_ANALYSIS_PUBLISHED_H_
