#include "common/client/touch_evidence.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "common/rules/pack_names.h"

namespace assay::client {

using rules::Assurance;

namespace {

constexpr double kUsPerMs = 1000;

}  // namespace

// As it was judged; of runs that were judged before there was a bound, as their nodes told it.
std::optional<double> TouchAfterStartMs(const v1::Run& run) {
  if (run.has_touch_after_start_us())
    return static_cast<double>(run.touch_after_start_us()) / kUsPerMs;
  const bool is_witnessed = run.has_first_touch_us() || run.has_observed_touch_us();
  if (!is_witnessed || !run.has_run_start_ms()) return std::nullopt;
  const int64_t touch_us =
      run.has_first_touch_us() ? run.first_touch_us() : run.observed_touch_us();
  return static_cast<double>(touch_us) / kUsPerMs - static_cast<double>(run.run_start_ms());
}

std::optional<double> TouchErrorMs(const v1::Run& run) {
  if (!run.has_touch_after_start_us() || !run.has_touch_error_us()) return std::nullopt;
  return static_cast<double>(run.touch_error_us()) / kUsPerMs;
}

std::string TouchTimeText(double after_ms, std::optional<double> error_ms) {
  std::string text = absl::StrFormat("%.1f ms %s run_start", std::fabs(after_ms),
                                     after_ms < 0 ? "before" : "after");
  if (error_ms.has_value()) absl::StrAppendFormat(&text, ", +-%.1f ms", *error_ms);
  return text;
}

std::optional<TouchEvidence> TouchEvidenceOf(std::span<const v1::Run> runs) {
  if (runs.empty()) return std::nullopt;
  TouchEvidence evidence;
  evidence.run_count = runs.size();
  std::optional<Assurance> weakest;
  for (const v1::Run& run : runs) {
    evidence.holes.insert(run.touch_hole_codes().begin(), run.touch_hole_codes().end());
    if (const std::optional<double> after_ms = TouchAfterStartMs(run);
        after_ms.has_value() && *after_ms < evidence.earliest_ms.value_or(HUGE_VAL)) {
      evidence.earliest_ms = after_ms;
      evidence.error_ms = TouchErrorMs(run);
    }
    const Assurance assurance =
        rules::FromName<Assurance>(run.touch_assurance()).value_or(Assurance::kSelfReported);
    if (weakest.has_value() && assurance > *weakest) continue;
    if (assurance != weakest) evidence.weakest_count = 0;
    weakest = assurance;
    ++evidence.weakest_count;
  }
  evidence.assurance = std::string(rules::NameOf(*weakest));
  return evidence;
}

std::string TouchEvidenceText(const TouchEvidence& evidence) {
  std::string text = evidence.assurance;
  if (evidence.weakest_count < evidence.run_count)
    absl::StrAppend(&text, " in ", evidence.weakest_count, " of ", evidence.run_count,
                    " runs, better in the others");
  if (evidence.earliest_ms.has_value())
    absl::StrAppend(&text, evidence.run_count > 1 ? "; the earliest " : "; ",
                    TouchTimeText(*evidence.earliest_ms, evidence.error_ms));
  if (!evidence.holes.empty())
    absl::StrAppend(&text, "; holes: ", absl::StrJoin(evidence.holes, " "));
  return text;
}

void AddTouchEvidence(const TouchEvidence& evidence, Json* json) {
  (*json)["touch_assurance"] = evidence.assurance;
  if (!evidence.holes.empty()) (*json)["touch_hole_codes"] = evidence.holes;
  if (evidence.earliest_ms) (*json)["touch_after_run_start_ms"] = *evidence.earliest_ms;
  if (evidence.error_ms) (*json)["touch_error_ms"] = *evidence.error_ms;
}

}  // namespace assay::client
