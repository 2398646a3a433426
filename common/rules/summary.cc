#include "common/rules/summary.h"

#include <cmath>

namespace assay::rules {
namespace {

SummaryRow RowWith(const SummaryInput& input, std::optional<double> scaling) {
  SummaryRow row = {.scaling_factor = scaling.value_or(1)};
  if (input.score.minutes) row.minutes = *input.score.minutes * row.scaling_factor;
  if (input.energy) row.energy = *input.energy * row.scaling_factor;
  if (!input.is_closed) return row;
  row.reference_word = SummaryWord(input.verdict);
  if (!input.verdict.exception.empty()) return row;
  row.batch_size = input.submission.batch_size;
  if (std::isfinite(input.verdict.olympic_mean))
    row.epochs_to_converge = input.verdict.olympic_mean;
  return row;
}

}  // namespace

Summary Summarize(const SummaryInput& input) {
  // The check of a closed set replaces the file, or removes it; open sets are not checked.
  const std::optional<double> left =
      input.is_closed ? input.verdict.scaling_factor() : input.shipped_scaling;
  return {.first = RowWith(input, input.shipped_scaling), .second = RowWith(input, left)};
}

}  // namespace assay::rules
