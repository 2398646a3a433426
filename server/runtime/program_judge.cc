#include "server/runtime/program_judge.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/json_reader.h"
#include "common/log.h"

namespace assay::runtime {
std::unique_ptr<rules::ProgramLogCheck> CheckOfProgram(
    const core::Run& run, const core::Submission& submission,
    const std::optional<core::Dataset>& dataset) {
  const core::SubmissionSpec& spec = submission.spec;
  if (!std::holds_alternative<core::CommandWorkload>(spec.workload)) return nullptr;
  rules::LoggedFacts facts{.organization = spec.organization,
                           .system = spec.system,
                           .benchmark = spec.benchmark,
                           .division = spec.division,
                           .status = spec.status,
                           .seed = run.seed,
                           .node_count = spec.node_count};
  if (dataset.has_value()) {
    facts.train_samples = dataset->train_sample_count;
    facts.eval_samples = dataset->eval_sample_count;
  }
  for (const core::Hyperparameter& parameter : spec.hyperparameters) {
    JsonResult value = ParseJson(parameter.json_value);
    if (value.error == JsonError::kNone)
      facts.hyperparameters.emplace(parameter.key, std::move(value.value));
  }
  return std::make_unique<rules::ProgramLogCheck>(facts);
}

void JudgeProgram(const core::Run& run, rules::ProgramLogCheck* check, core::RunFacts* facts) {
  std::vector<core::Finding> findings = check->Finish();
  for (const core::ArtifactRef& file : run.artifacts)
    if (absl::StartsWith(file.file_name, "log_") && file.size_bytes > 0)
      findings.push_back(rules::LoggedElsewhere(file.file_name, file.size_bytes));
  for (core::Finding& finding : findings) {
    if (finding.severity == core::Severity::kError) facts->is_compliant = false;
    facts->findings.push_back(std::move(finding));
  }
}

}  // namespace assay::runtime
