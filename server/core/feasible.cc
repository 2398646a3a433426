#include "server/core/feasible.h"

#include <utility>

#include "common/json_reader.h"
#include "common/rules/ranks.h"

namespace assay::core {

namespace {

// Unless there is a value of that name already.
void Add(const std::string& name, const std::string& json_value, rules::Hyperparameters* values) {
  JsonResult parsed = ParseJson(json_value);
  if (parsed.error == JsonError::kNone) values->emplace(name, std::move(parsed.value));
}

}  // namespace

std::vector<Finding> CheckFeasible(const State& state, const SubmissionSpec& spec) {
  rules::Hyperparameters values;
  for (const Hyperparameter& hyperparameter : spec.hyperparameters)
    Add(hyperparameter.key, hyperparameter.json_value, &values);
  if (const auto dataset = state.datasets.find(spec.dataset); dataset != state.datasets.end())
    for (const auto& [name, json_value] : dataset->second.parameters)
      Add(name, json_value, &values);
  return rules::CheckRanks(values, {.benchmark = spec.benchmark,
                                    .nodes = spec.node_count,
                                    .ranks_per_node = spec.ranks_per_node,
                                    .backend = BackendOf(spec.workload)});
}

}  // namespace assay::core
