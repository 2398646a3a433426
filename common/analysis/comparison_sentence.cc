// The sentences of set_comparison.h.

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/analysis/set_comparison.h"

namespace assay::analysis {
namespace {

constexpr double kFactorFrom = 1.5;  // above it, or below its inverse, percentages mislead

// "12", "2.5": whole per cents from 10 on, else with one decimal.
std::string Percent(double share) {
  const double percent = share * 100;
  return std::fabs(percent) >= 9.95 ? absl::StrFormat("%.0f", percent)
                                    : absl::StrFormat("%.1f", percent);
}

std::string SignedPercent(double share) {
  return absl::StrCat(share < 0 ? "-" : "+", Percent(std::fabs(share)));
}

std::string Confidence(const SetComparison& comparison) {
  return absl::StrFormat("%.0f %%", comparison.confidence * 100);
}

bool IsFactor(double ratio) {
  return ratio >= kFactorFrom || ratio <= 1 / kFactorFrom;
}

// "12 % faster than e-1 (95 %: 8.0 to 16 %)"; of a significant difference.
std::string SpeedText(const SetComparison& comparison, const MeasureComparison& time) {
  const bool is_faster = time.ratio < 1;
  if (IsFactor(time.ratio)) {
    const double factor = is_faster ? 1 / time.ratio : time.ratio;
    const double low = is_faster ? 1 / *time.high : *time.low;
    const double high = is_faster ? 1 / *time.low : *time.high;
    return absl::StrFormat("%s %.2f times as %s as %s (%s: %.2f to %.2f)",
                           is_faster ? "is" : "takes", factor, is_faster ? "fast" : "long",
                           comparison.a, Confidence(comparison), low, high);
  }
  const double nearer = is_faster ? 1 - *time.high : *time.low - 1;
  const double further = is_faster ? 1 - *time.low : *time.high - 1;
  return absl::StrFormat("is %s %% %s than %s (%s: %s to %s %%)",
                         Percent(std::fabs(time.ratio - 1)), is_faster ? "faster" : "slower",
                         comparison.a, Confidence(comparison), Percent(nearer), Percent(further));
}

// "its epochs are shorter", "it needs more epochs".
std::string PartText(const MeasureComparison& part) {
  const bool is_less = part.ratio < 1;
  if (part.measure == Measure::kEpochSeconds)
    return absl::StrCat("its epochs are ", is_less ? "shorter" : "longer");
  return absl::StrCat("it needs ", is_less ? "fewer" : "more", " epochs");
}

// The same with how much: "its epochs are 12 % shorter". `owner`: whose, if a name is needed.
std::string PartWithSize(const MeasureComparison& part, const std::string& owner = "") {
  const bool is_length = part.measure == Measure::kEpochSeconds;
  const bool is_less = part.ratio < 1;
  const std::string subject =
      is_length ? absl::StrCat(owner.empty() ? "its" : owner + "'s", " epochs are ")
                : absl::StrCat(owner.empty() ? "it" : owner, " needs ");
  if (IsFactor(part.ratio))
    return absl::StrCat(subject, absl::StrFormat("%.2f times as ", part.ratio),
                        is_length ? "long" : "many epochs");
  const std::string percent = Percent(std::fabs(part.ratio - 1));
  if (is_length) return absl::StrCat(subject, percent, " % ", is_less ? "shorter" : "longer");
  return absl::StrCat(subject, percent, " % ", is_less ? "fewer" : "more", " epochs");
}

std::string SameText(const MeasureComparison& part) {
  return part.measure == Measure::kEpochSeconds
             ? "the seconds per epoch do not differ significantly"
             : "the epochs to target do not differ significantly";
}

// Why the times differ, by what of the two parts is significant.
std::string Because(const MeasureComparison& time, const MeasureComparison& epochs,
                    const MeasureComparison& seconds) {
  const auto pulls_along = [&](const MeasureComparison& part) {
    return part.is_significant() && (part.ratio < 1) == (time.ratio < 1);
  };
  const auto pulls_back = [&](const MeasureComparison& part) {
    return part.is_significant() && !pulls_along(part);
  };
  if (pulls_along(epochs) && pulls_along(seconds))
    return absl::StrCat(", because ", PartWithSize(seconds), " and ", PartWithSize(epochs));
  for (const auto& [one, other] : {std::pair(&seconds, &epochs), std::pair(&epochs, &seconds)}) {
    if (pulls_along(*one) && pulls_back(*other))
      return absl::StrCat(", because ", PartWithSize(*one), ", although ", PartWithSize(*other));
    if (pulls_along(*one))
      return absl::StrCat(", because ", PartText(*one), "; ", SameText(*other));
  }
  for (const MeasureComparison* part : {&seconds, &epochs})
    if (pulls_back(*part)) return absl::StrCat(", although ", PartWithSize(*part));
  return "; neither the epochs to target nor the seconds per epoch alone differ significantly";
}

std::string NoDifference(const SetComparison& comparison, const MeasureComparison& time,
                         const MeasureComparison& epochs, const MeasureComparison& seconds) {
  std::string text =
      absl::StrFormat("%s and %s do not differ significantly in time to solution (%s: %s to %s %%)",
                      comparison.a, comparison.b, Confidence(comparison),
                      SignedPercent(*time.low - 1), SignedPercent(*time.high - 1));
  if (epochs.is_significant() && seconds.is_significant())
    return absl::StrCat(text, ": ", PartWithSize(seconds, comparison.b), ", but ",
                        PartWithSize(epochs));
  for (const MeasureComparison* part : {&seconds, &epochs})
    if (part->is_significant())
      return absl::StrCat(text, ", although ", PartWithSize(*part, comparison.b));
  return text;
}

}  // namespace

std::string ComparisonSentence(const SetComparison& comparison) {
  if (comparison.measures.empty())
    return absl::StrCat(comparison.runs_a == 0 ? comparison.a : comparison.b,
                        " has no run with a time: there is nothing to compare.");
  const MeasureComparison& time = comparison.measures[0];
  if (!time.low)
    return absl::StrFormat(
        "%s has %d runs with a time and %s %d: too few to say whether they differ (at least %d of "
        "each).",
        comparison.a, comparison.runs_a, comparison.b, comparison.runs_b, kComparedRunsMin);
  const MeasureComparison& epochs = comparison.measures[1];
  const MeasureComparison& seconds = comparison.measures[2];
  if (!time.is_significant()) return NoDifference(comparison, time, epochs, seconds) + ".";
  return absl::StrCat(comparison.b, " ", SpeedText(comparison, time),
                      Because(time, epochs, seconds), ".");
}

}  // namespace assay::analysis
