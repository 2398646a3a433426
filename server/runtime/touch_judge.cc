#include "server/runtime/touch_judge.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"

#include "common/json_document.h"
#include "common/rules/check.h"
#include "common/rules/pack_names.h"
#include "server/runtime/evidence_file.h"

namespace assay::runtime {
namespace {

using Json = nlohmann::json;
using rules::Assurance;

constexpr int64_t kTouchBytesMax = 1 << 20;

struct NodeTouch {
  Assurance assurance = Assurance::kSelfReported;
  std::vector<std::string> holes;  // codes
};

std::string Text(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// The attributed one, else the one that was only observed.
NodeTouch TouchOf(int node, const core::Run& run, const store::ArtifactStore& artifacts) {
  NodeTouch touch;
  for (const char* kind : {"touch_", "observed_"}) {
    const std::optional<std::string> text =
        EvidenceOf(absl::StrCat(kind, node, ".json"), kTouchBytesMax, run, artifacts);
    if (!text.has_value()) continue;
    const Json json = ParseJsonDocument<Json>(*text);
    if (!json.is_object()) continue;
    // An agent of before says nothing of it.
    touch.assurance =
        rules::FromName<Assurance>(Text(json, "assurance")).value_or(Assurance::kObserved);
    const auto holes = json.find("holes");
    if (holes != json.end() && holes->is_array())
      for (const Json& hole : *holes)
        if (hole.is_object()) touch.holes.push_back(Text(hole, "code"));
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
