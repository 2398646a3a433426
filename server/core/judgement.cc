#include "server/core/judgement.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/rules/spec_rules.h"
#include "server/core/decide.h"
#include "server/core/feasible.h"
#include "server/core/lease.h"
#include "server/core/schedule.h"

namespace assay::core {
namespace {

using rules::SpecFinding;

void JudgeTexts(const SubmissionSpec& spec, std::vector<Finding>* findings) {
  const std::pair<absl::string_view, const std::string&> required[] = {
      {"organization", spec.organization}, {"system", spec.system}, {"benchmark", spec.benchmark},
      {"division", spec.division},         {"round", spec.round},   {"dataset", spec.dataset},
      {"staging", spec.staging},
  };
  for (const auto& [field, text] : required)
    if (text.empty() || text.size() > kTextBytesMax)
      findings->push_back(SpecFinding("R-SPC-001", field,
                                      absl::StrCat("1 to ", kTextBytesMax, " bytes"),
                                      text.empty() ? "nothing" : absl::StrCat(text.size())));
  if (spec.fleet.size() > kTextBytesMax)
    findings->push_back(SpecFinding("R-SPC-001", "fleet",
                                    absl::StrCat("at most ", kTextBytesMax, " bytes"),
                                    absl::StrCat(spec.fleet.size())));
}

struct Bound {
  absl::string_view field;
  int64_t value;
  int64_t min;
  int64_t max;
};

void JudgeNumbers(const SubmissionSpec& spec, std::vector<Finding>* findings) {
  const Bound bounds[] = {
      {"node_count", spec.node_count, 1, kNodeCountMax},
      {"ranks_per_node", spec.ranks_per_node, 1, kRanksPerNodeMax},
      {"run_count", spec.run_count, 1, kRunCountMax},
      {"replacement_count_max", spec.replacement_count_max, 0, kReplacementCountMax},
      {"epoch_count_max", spec.epoch_count_max, 1, 1'000'000},
      {"run_timeout_ms", spec.run_timeout_ms, 1, 30LL * 24 * 3600 * 1000},
      {"minutes_per_run", spec.minutes_per_run, 0, kMinutesPerRunMax},
      {"hyperparameters", static_cast<int64_t>(spec.hyperparameters.size()), 0,
       static_cast<int64_t>(kHyperparameterCountMax)},
  };
  for (const Bound& bound : bounds)
    if (bound.value < bound.min || bound.value > bound.max)
      findings->push_back(SpecFinding("R-SPC-002", bound.field,
                                      absl::StrCat(bound.min, " to ", bound.max),
                                      absl::StrCat(bound.value)));
}

// Rules specification, section 5.2, and the run rules: an instance that fails is left out.
void JudgeInstances(const SubmissionSpec& spec, std::vector<Finding>* findings) {
  if (!IsThroughput(spec)) return;
  if (spec.replacement_count_max > 0)
    findings->push_back(
        SpecFinding("R-SPC-005", "replacement_count_max",
                    "0 in a throughput set, whose instances start together",
                    absl::StrCat(spec.replacement_count_max),
                    "leave replacements out: an instance that fails is left out, so ask for more "
                    "instances than the round demands"));
  if (NodesAtOnce(spec) > kNodeCountMax)
    findings->push_back(SpecFinding(
        "R-SPC-005", "run_count", absl::StrCat("at most ", kNodeCountMax, " nodes at once"),
        absl::StrCat(spec.run_count, " instances of ", spec.node_count, " nodes")));
}

void JudgeDataset(const State& state, const SubmissionSpec& spec, std::vector<Finding>* findings) {
  if (spec.dataset.empty()) return;
  const auto found = state.datasets.find(spec.dataset);
  if (found == state.datasets.end())
    findings->push_back(SpecFinding("R-SPC-003", "dataset", "", spec.dataset));
  else if (found->second.benchmark != spec.benchmark)
    findings->push_back(
        SpecFinding("R-SPC-004", "dataset", absl::StrCat("a dataset of ", spec.benchmark),
                    absl::StrCat(spec.dataset, ", which is of ", found->second.benchmark)));
}

}  // namespace

std::vector<Finding> JudgeSpec(const State& state, const LauncherStarted& launcher,
                               const SubmissionSpec& spec) {
  std::vector<Finding> findings;
  JudgeTexts(spec, &findings);
  JudgeNumbers(spec, &findings);
  JudgeInstances(spec, &findings);
  JudgeDataset(state, spec, &findings);
  if (!findings.empty()) return findings;  // the rest is asked of a spec that is whole
  findings = CheckFeasible(state, spec);
  std::vector<Finding> unfit = CheckFleet(state, launcher, spec);
  std::move(unfit.begin(), unfit.end(), std::back_inserter(findings));
  return findings;
}

}  // namespace assay::core
