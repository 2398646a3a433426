// What the official summarizer says of a set of strong-scaling runs (rules specification, sections
// 5.1 and 5.5), with the quirk that it reads scaling.json before its own check rewrites the file:
// so a tree gets one score when it is summarized first, and may get another the second time.

#ifndef COMMON_RULES_SUMMARY_H_
#define COMMON_RULES_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/rules/rcp.h"
#include "common/rules/score.h"

namespace assay::rules {

// A row of the detailed summary.
struct SummaryRow {
  std::optional<double> minutes;             // the score, scaled
  std::optional<double> energy;              // scaled likewise; none without power logs
  std::optional<int64_t> batch_size;         // closed only, as the next two
  std::optional<double> epochs_to_converge;  // olympic mean
  std::string reference_word;                // SummaryWord; empty for open
  double scaling_factor = 1;
};

struct Summary {
  SummaryRow first;   // of the tree as it was published
  SummaryRow second;  // of the tree as the first pass leaves it
};

// What the summary is made of.
struct SummaryInput {
  TimeToSolution score;          // OlympicScore
  std::optional<double> energy;  // ScoredEnergy without scaling
  bool is_closed = false;        // by the system's description
  ConvergenceSubmission submission;
  ConvergenceVerdict verdict;             // of the pruned points
  std::optional<double> shipped_scaling;  // of the scaling.json in the tree
};

Summary Summarize(const SummaryInput& input);

}  // namespace assay::rules

#endif  // COMMON_RULES_SUMMARY_H_
