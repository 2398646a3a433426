#include "server/core/feasible.h"

#include <utility>

#include "common/json_reader.h"
#include "common/rules/programs.h"
#include "common/rules/ranks.h"
#include "common/rules/trainer_settings.h"

namespace assay::core {

namespace {

// Unless there is a value of that name already.
void Add(const std::string& name, const std::string& json_value, rules::Hyperparameters* values) {
  JsonResult parsed = ParseJson(json_value);
  if (parsed.error == JsonError::kNone) values->emplace(name, std::move(parsed.value));
}

std::vector<Finding> CheckProgram(const SubmissionSpec& spec, const CommandWorkload& workload) {
  rules::Program program{.division = spec.division,
                         .command = workload.command,
                         .launcher = workload.launcher,
                         .log = workload.log,
                         .env = workload.env,
                         .collect = workload.collect,
                         .stop_grace_s = workload.stop_grace_s,
                         .memory_mib = workload.memory_mib};
  if (const std::optional<SourceArchive>& source = workload.source) {
    program.has_source = true;
    program.source_digest = source->sha256;
    program.source_bytes = source->size_bytes;
    program.git_commit = source->git_commit;
    program.is_modified = source->is_modified;
  }
  if (workload.image.has_value()) {
    program.image_path = workload.image->path;
    program.image_digest = workload.image->sha256;
  }
  return rules::CheckProgram(program);
}

}  // namespace

std::vector<Finding> CheckFeasible(const State& state, const SubmissionSpec& spec) {
  // How a program divides its work is its own affair.
  if (const auto* command = std::get_if<CommandWorkload>(&spec.workload))
    return CheckProgram(spec, *command);
  std::vector<Finding> findings = rules::CheckNativeTrainer(spec.benchmark);
  if (!findings.empty()) return findings;
  rules::Hyperparameters values;
  for (const Hyperparameter& hyperparameter : spec.hyperparameters)
    Add(hyperparameter.key, hyperparameter.json_value, &values);
  rules::TrainerTask task = {.benchmark = spec.benchmark,
                             .division = spec.division,
                             .round = spec.round,
                             .ranks = int64_t{spec.node_count} * spec.ranks_per_node};
  if (const auto dataset = state.datasets.find(spec.dataset); dataset != state.datasets.end()) {
    for (const auto& [name, json_value] : dataset->second.parameters)
      Add(name, json_value, &values);
    task.train_samples = dataset->second.train_sample_count;
    task.eval_samples = dataset->second.eval_sample_count;
  }
  findings = rules::CheckRanks(values, {.benchmark = spec.benchmark,
                                        .nodes = spec.node_count,
                                        .ranks_per_node = spec.ranks_per_node,
                                        .backend = BackendOf(spec.workload)});
  if (!findings.empty()) return findings;  // the batch is judged once it is shared evenly
  return rules::CheckSettings(values, task);
}

}  // namespace assay::core
