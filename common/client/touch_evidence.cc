#include "common/client/touch_evidence.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/rules/pack_names.h"

namespace assay::client {

using rules::Assurance;

std::optional<TouchEvidence> TouchEvidenceOf(std::span<const v1::Run> runs) {
  if (runs.empty()) return std::nullopt;
  TouchEvidence evidence;
  evidence.run_count = runs.size();
  std::optional<Assurance> weakest;
  for (const v1::Run& run : runs) {
    evidence.holes.insert(run.touch_hole_codes().begin(), run.touch_hole_codes().end());
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
  if (!evidence.holes.empty())
    absl::StrAppend(&text, "; holes: ", absl::StrJoin(evidence.holes, " "));
  return text;
}

void AddTouchEvidence(const TouchEvidence& evidence, Json* json) {
  (*json)["touch_assurance"] = evidence.assurance;
  if (!evidence.holes.empty()) (*json)["touch_hole_codes"] = evidence.holes;
}

}  // namespace assay::client
