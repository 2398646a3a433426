#include "server/core/feasible.h"

#include <utility>

#include "common/json_reader.h"
#include "common/rules/ranks.h"

namespace assay::core {

std::vector<Finding> CheckFeasible(const State& state, const SubmissionSpec& spec) {
  rules::Hyperparameters values;
  for (const Hyperparameter& hyperparameter : spec.hyperparameters) {
    JsonResult parsed = ParseJson(hyperparameter.json_value);
    if (parsed.error == JsonError::kNone)
      values.emplace(hyperparameter.key, std::move(parsed.value));
  }
  const auto dataset = state.datasets.find(spec.dataset);
  return rules::CheckRanks(
      values, {.benchmark = spec.benchmark,
               .nodes = spec.node_count,
               .ranks_per_node = spec.ranks_per_node,
               .cube_edge = dataset == state.datasets.end() ? 0 : dataset->second.cube_edge,
               .backend = spec.backend});
}

}  // namespace assay::core
