#include "server/runtime/node_judge.h"

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/rules/check.h"
#include "common/telemetry/cache_record.h"
#include "server/runtime/evidence_file.h"

namespace assay::runtime {
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
    const telemetry::CacheRecord record =
        telemetry::ReadCacheRecord(CachesOf(node, run, artifacts));
    if (record.is_local && !record.boot_id.empty())
      machines.emplace(record.boot_id, absl::StrCat("node ", node, ": ", record.file_system));
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
