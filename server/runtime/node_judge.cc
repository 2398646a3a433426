#include "server/runtime/node_judge.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/json_reader.h"
#include "common/json_value.h"
#include "common/rules/check.h"
#include "server/runtime/evidence_file.h"

namespace assay::runtime {
namespace {

constexpr int64_t kCachesBytesMax = 4 << 20;

// Where a node has found the dataset.
struct Place {
  std::string boot_id;  // of the machine: nodes may share one
  std::string file_system;
};

// nullopt: on no local storage, or not known.
std::optional<Place> LocalPlaceOf(int node, const core::Run& run,
                                  const store::ArtifactStore& artifacts) {
  const std::optional<std::string> text =
      EvidenceOf(absl::StrCat("caches_", node, ".json"), kCachesBytesMax, run, artifacts);
  if (!text.has_value()) return std::nullopt;
  const JsonResult parsed = ParseJson(*text);
  if (parsed.error != JsonError::kNone) return std::nullopt;
  const auto text_of = [&parsed](absl::string_view name) {
    const JsonValue* const member = parsed.value.Find(name);
    const std::string* const value = member == nullptr ? nullptr : member->AsString();
    return value == nullptr ? std::string() : *value;
  };
  const JsonValue* const is_local = parsed.value.Find("is_local");
  Place place{.boot_id = text_of("boot_id"), .file_system = text_of("file_system")};
  if (is_local == nullptr || is_local->AsBool() != true || place.boot_id.empty())
    return std::nullopt;
  return place;
}

}  // namespace

void JudgeNodes(const std::vector<core::Finding>& seen, bool is_cold_demanded,
                core::RunFacts* facts) {
  for (core::Finding finding : seen) {
    if (!absl::StartsWith(finding.rule_id, "R-PAU-") && !rules::IsOfNode(finding.rule_id)) continue;
    finding.severity = core::Severity::kWarning;
    if (is_cold_demanded && rules::IsOfMemory(finding.rule_id)) {
      finding.severity = core::Severity::kError;
      facts->is_compliant = false;
    }
    facts->findings.push_back(std::move(finding));
  }
}

void JudgePlace(const core::Run& run, int node_count, bool is_staging_timed,
                const store::ArtifactStore& artifacts, core::RunFacts* facts) {
  if (!is_staging_timed) return;
  std::map<std::string, std::string> machines;  // the first node of each, by boot
  for (int node = 0; node < node_count; ++node) {
    const std::optional<Place> place = LocalPlaceOf(node, run, artifacts);
    if (!place.has_value()) continue;
    machines.emplace(place->boot_id, absl::StrCat("node ", node, ": ", place->file_system));
  }
  if (machines.size() < 2) return;
  constexpr size_t kShown = 4;
  std::vector<std::string> shown;
  for (const auto& [boot_id, words] : machines)
    if (shown.size() < kShown) shown.push_back(words);
  facts->findings.push_back(rules::CopiedBefore(
      absl::StrCat("local storage on ", machines.size(), " machines (", absl::StrJoin(shown, ", "),
                   machines.size() > kShown ? ", ...)" : ")")));
}

}  // namespace assay::runtime
