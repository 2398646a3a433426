#include "server/runtime/touch_judge.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

#include "common/json_reader.h"
#include "common/json_value.h"
#include "common/node_clock.h"
#include "common/program_contract.h"
#include "common/rules/check.h"
#include "common/rules/pack_names.h"
#include "server/core/gang_touch.h"
#include "server/runtime/evidence_file.h"

namespace assay::runtime {
namespace {

using rules::Assurance;

constexpr int64_t kTouchBytesMax = 1 << 20;
constexpr size_t kHolesMax = 32;  // of a node; there are a dozen kinds

constexpr char kErrorUs[] = "error_us";
constexpr int64_t kErrorUsMax = int64_t{3'600'000'000};  // more says nothing
constexpr int64_t kUsPerMs = 1000;                       // which the log cuts off

struct NodeTouch {
  Assurance assurance = Assurance::kSelfReported;
  std::vector<std::string> holes;   // codes
  std::optional<int64_t> error_us;  // of its stamp
};

std::string Text(const JsonValue& json, absl::string_view name) {
  const JsonValue* const member = json.Find(name);
  const std::string* const text = member == nullptr ? nullptr : member->AsString();
  return text == nullptr ? std::string() : *text;
}

// "W-NO-PID": nodes write them, and the coordinator shows no text of theirs that is none.
bool IsCode(absl::string_view text) {
  constexpr size_t kCodeBytesMax = 32;
  return absl::StartsWith(text, "W-") && text.size() <= kCodeBytesMax &&
         std::all_of(text.begin(), text.end(), [](char letter) {
           return absl::ascii_isupper(static_cast<unsigned char>(letter)) || letter == '-';
         });
}

// The attributed one, else the one that was only observed.
NodeTouch TouchOf(int node, const core::Run& run, const store::ArtifactStore& artifacts) {
  NodeTouch touch;
  for (const char* kind : {kTouchPrefix, kObservedPrefix}) {
    const std::optional<std::string> text =
        EvidenceOf(absl::StrCat(kind, node, ".json"), kTouchBytesMax, run, artifacts);
    if (!text.has_value()) continue;
    const JsonResult json = ParseJson(*text);
    if (json.error != JsonError::kNone || json.value.AsObject() == nullptr) continue;
    if (const JsonValue* const error = json.value.Find(kErrorUs); error != nullptr)
      touch.error_us = error->AsInt64();
    if (touch.error_us.value_or(0) < 0 || touch.error_us.value_or(0) > kErrorUsMax)
      touch.error_us.reset();
    // An agent of before says nothing of it.
    touch.assurance =
        rules::FromName<Assurance>(Text(json.value, "assurance")).value_or(Assurance::kObserved);
    const JsonValue* const holes = json.value.Find("holes");
    if (holes != nullptr && holes->AsList() != nullptr)
      for (const JsonValue& hole : *holes->AsList())
        if (std::string code = Text(hole, "code"); IsCode(code) && touch.holes.size() < kHolesMax)
          touch.holes.push_back(std::move(code));
    return touch;
  }
  return touch;
}

int64_t IntegerOf(const JsonValue& json, absl::string_view name) {
  const JsonValue* const member = json.Find(name);
  return member == nullptr ? 0 : member->AsInt64().value_or(0);
}

// When a touch was by the clock of node 0. nullopt: not known. The node's record of it has the
// clock that nobody sets, which its event has not.
std::optional<core::ClockLead> LeadAtTouch(const NodeClock& clock, int64_t seen_us,
                                           absl::string_view record) {
  constexpr int64_t kNsPerUs = 1000;
  const JsonResult json = ParseJson(record);
  if (json.error != JsonError::kNone || IntegerOf(json.value, "wall_us") != seen_us)
    return std::nullopt;
  const std::optional<CarriedTime> at = clock.ByLog(IntegerOf(json.value, "mono_ns"));
  if (!at.has_value()) return std::nullopt;
  return core::ClockLead{.ahead_us = seen_us - at->at_ns / kNsPerUs,
                         .uncertainty_us = at->error_ns / kNsPerUs + 1};
}

// When the run's first touch was.
void TimeTouch(const core::Run& carried, const store::ArtifactStore& artifacts,
               core::RunFacts* facts) {
  const std::optional<core::GangTouch>& touch =
      carried.first_touch.has_value() ? carried.first_touch : carried.observed_touch;
  if (!touch.has_value() || !facts->run_start_ms.has_value()) return;
  facts->touch_after_start_us = touch->at_us - *facts->run_start_ms * kUsPerMs;
  int64_t error_us = 0;  // the largest of any node, whose ever the touch was
  for (size_t node = 0; node < carried.nodes.size(); ++node) {
    const core::RunNode& witness = carried.nodes[node];
    if (!witness.first_touch_us.has_value() && !witness.observed_touch_us.has_value()) continue;
    const NodeTouch seen = TouchOf(static_cast<int>(node), carried, artifacts);
    if (!seen.error_us.has_value()) return;
    error_us = std::max(error_us, *seen.error_us);
  }
  facts->touch_error_us = error_us + touch->uncertainty_us + kUsPerMs;
}

}  // namespace

core::Run WithCarriedTouches(core::Run run, const rules::RunClocks& clocks,
                             const store::ArtifactStore& artifacts) {
  const auto lead_of = [&](const core::Run& of, size_t node, core::NodeTouch touch) {
    const bool is_attributed = touch == &core::RunNode::first_touch_us;
    const std::optional<std::string> record =
        EvidenceOf(absl::StrCat(is_attributed ? kTouchPrefix : kObservedPrefix, node, ".json"),
                   kTouchBytesMax, of, artifacts);
    const std::optional<NodeClock> clock =
        record.has_value() ? clocks.Of(static_cast<int>(node)) : std::nullopt;
    const std::optional<core::ClockLead> lead =
        clock.has_value() ? LeadAtTouch(*clock, *(of.nodes[node].*touch), *record) : std::nullopt;
    return lead.value_or(core::LeadAtStart(of, node, touch));
  };
  core::FindFirstTouches(lead_of, &run);
  return run;
}

void JudgeTouches(const core::Run& run, int node_count, Assurance demanded,
                  const store::ArtifactStore& artifacts, core::RunFacts* facts) {
  Assurance weakest = Assurance::kProven;
  std::set<std::string> codes;
  bool is_short = false;
  for (int node = 0; node < node_count; ++node) {
    const NodeTouch touch = TouchOf(node, run, artifacts);
    weakest = std::min(weakest, touch.assurance);
    codes.insert(touch.holes.begin(), touch.holes.end());
    if (touch.assurance >= demanded || is_short) continue;
    is_short = true;
    facts->is_compliant = false;
    facts->findings.push_back(rules::WeakFirstTouch(absl::StrCat(
        "node ", node, ": ", rules::NameOf(touch.assurance),
        touch.holes.empty() ? "" : " with the holes ", absl::StrJoin(touch.holes, ", "),
        "; the round demands ", rules::NameOf(demanded))));
  }
  TimeTouch(run, artifacts, facts);
  facts->touch_assurance = std::string(rules::NameOf(weakest));
  facts->touch_hole_codes.assign(codes.begin(), codes.end());
}

}  // namespace assay::runtime
