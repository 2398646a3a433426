#include "server/runtime/touch_judge.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

#include "common/json_reader.h"
#include "common/json_value.h"
#include "common/rules/check.h"
#include "common/rules/pack_names.h"
#include "server/runtime/evidence_file.h"

namespace assay::runtime {
namespace {

using rules::Assurance;

constexpr int64_t kTouchBytesMax = 1 << 20;

struct NodeTouch {
  Assurance assurance = Assurance::kSelfReported;
  std::vector<std::string> holes;  // codes
};

std::string Text(const JsonValue& json, absl::string_view name) {
  const JsonValue* const member = json.Find(name);
  const std::string* const text = member == nullptr ? nullptr : member->AsString();
  return text == nullptr ? std::string() : *text;
}

// The attributed one, else the one that was only observed.
NodeTouch TouchOf(int node, const core::Run& run, const store::ArtifactStore& artifacts) {
  NodeTouch touch;
  for (const char* kind : {"touch_", "observed_"}) {
    const std::optional<std::string> text =
        EvidenceOf(absl::StrCat(kind, node, ".json"), kTouchBytesMax, run, artifacts);
    if (!text.has_value()) continue;
    const JsonResult json = ParseJson(*text);
    if (json.error != JsonError::kNone || json.value.AsObject() == nullptr) continue;
    // An agent of before says nothing of it.
    touch.assurance =
        rules::FromName<Assurance>(Text(json.value, "assurance")).value_or(Assurance::kObserved);
    const JsonValue* const holes = json.value.Find("holes");
    if (holes != nullptr && holes->AsList() != nullptr)
      for (const JsonValue& hole : *holes->AsList())
        touch.holes.push_back(Text(hole, "code"));
    return touch;
  }
  return touch;
}

}  // namespace

void JudgeTouches(const core::Run& run, int node_count, Assurance demanded,
                  const store::ArtifactStore& artifacts, core::RunFacts* facts) {
  if (demanded == Assurance::kSelfReported) return;
  for (int node = 0; node < node_count; ++node) {
    const NodeTouch touch = TouchOf(node, run, artifacts);
    if (touch.assurance >= demanded) continue;
    facts->is_compliant = false;
    facts->findings.push_back(rules::WeakFirstTouch(absl::StrCat(
        "node ", node, ": ", rules::NameOf(touch.assurance),
        touch.holes.empty() ? "" : " with the holes ", absl::StrJoin(touch.holes, ", "),
        "; the round demands ", rules::NameOf(demanded))));
    return;
  }
}

}  // namespace assay::runtime
