#include "common/rules/throughput.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/rules/score.h"

namespace assay::rules {
namespace {

// Python compares the numbers, so 4.0 nodes are 4.
std::optional<int64_t> WholeNumber(const std::optional<JsonValue>& value) {
  if (!value) return std::nullopt;
  if (const auto number = value->AsInt64(); number) return number;
  const std::optional<double> number = value->ToDouble();
  if (!number || std::fabs(*number) > 1e15 || *number != std::floor(*number)) return std::nullopt;
  return static_cast<int64_t>(*number);
}

// The models of `good` from position `first` on, by their stops.
std::vector<size_t> ByStops(std::span<const ModelRun> runs, const std::vector<size_t>& good,
                            size_t first) {
  std::vector<size_t> later(good.begin() + static_cast<ptrdiff_t>(first), good.end());
  std::stable_sort(later.begin(), later.end(),
                   [&](size_t a, size_t b) { return *runs[a].run_stop_ms < *runs[b].run_stop_ms; });
  return later;
}

}  // namespace

bool IsGood(const ModelRun& run) {
  return run.compliant && run.run_start_ms && run.run_stop_ms;
}

std::optional<int64_t> InstanceScale(const Facts& facts) {
  const std::optional<int64_t> nodes = WholeNumber(facts.number_of_nodes);
  const int64_t accelerators =
      std::max<int64_t>(WholeNumber(facts.accelerators_per_node).value_or(0), 1);
  constexpr int64_t kUnitsMax = int64_t{1} << 53;
  if (!nodes || *nodes < 1 || *nodes > kUnitsMax / accelerators) return std::nullopt;
  return *nodes * accelerators;
}

ModelRun ModelRunOf(const CheckResult& result) {
  return {.compliant = result.pass,
          .run_start_ms = result.facts.run_start_ms,
          .run_stop_ms = result.facts.run_stop_ms,
          .instance_scale = InstanceScale(result.facts)};
}

Throughput ScoreThroughput(std::span<const ModelRun> runs, int models_required, int pruned_count) {
  Throughput score = {.pruned_count = pruned_count};
  double first = std::numeric_limits<double>::infinity();
  double last = -first;
  std::set<int64_t> scales;
  for (const ModelRun& run : runs) {
    if (!IsGood(run)) {
      ++score.failed_count;
      continue;
    }
    ++score.model_count;
    first = std::min(first, *run.run_start_ms);
    last = std::max(last, *run.run_stop_ms);
    if (run.instance_scale) scales.insert(*run.instance_scale);
  }
  score.instance_scales.assign(scales.begin(), scales.end());
  if (score.model_count > 0) score.time_to_all_minutes = (last - first) / kMsPerMinute;
  if (score.model_count < models_required) {
    score.reason = absl::StrCat("only ", score.model_count, " of at least ", models_required,
                                " models pass the check");
  } else if (score.model_count == 0) {
    score.reason = "no models";
  } else if (scales.size() > 1) {
    score.reason = absl::StrCat("the logs disagree on the scale of an instance: ",
                                absl::StrJoin(scales, ", "));
  } else if (last <= first) {
    score.reason = "the last run_stop does not come after the first run_start";
  }
  score.is_scored = score.reason.empty();
  return score;
}

std::vector<Pruning> Prunings(std::span<const ModelRun> runs, int models_required) {
  std::vector<size_t> good;  // by their starts
  for (size_t i = 0; i < runs.size(); ++i)
    if (IsGood(runs[i])) good.push_back(i);
  std::stable_sort(good.begin(), good.end(), [&](size_t a, size_t b) {
    return *runs[a].run_start_ms < *runs[b].run_start_ms;
  });
  // The best choice of a size begins with one of them, and of those that start no earlier it has
  // the ones that stop first.
  struct Choice {
    double minutes = std::numeric_limits<double>::infinity();
    size_t first = 0;
  };
  std::vector<Choice> best(good.size() + 1);
  for (size_t first = 0; first < good.size(); ++first) {
    const std::vector<size_t> later = ByStops(runs, good, first);
    for (size_t count = 1; count <= later.size(); ++count) {
      const double ms = *runs[later[count - 1]].run_stop_ms - *runs[good[first]].run_start_ms;
      if (ms / kMsPerMinute < best[count].minutes) best[count] = {ms / kMsPerMinute, first};
    }
  }
  std::vector<Pruning> prunings;
  for (size_t count = good.size(); count >= static_cast<size_t>(std::max(models_required, 1));
       --count) {
    std::vector<size_t> kept = ByStops(runs, good, best[count].first);
    kept.resize(count);
    Pruning& pruning = prunings.emplace_back();
    pruning.model_count = static_cast<int>(count);
    pruning.time_to_all_minutes = best[count].minutes;
    std::sort(kept.begin(), kept.end());
    for (size_t i = 0; i < runs.size(); ++i)
      if (IsGood(runs[i]) && !std::binary_search(kept.begin(), kept.end(), i))
        pruning.left_out.push_back(i);
  }
  return prunings;
}

std::vector<std::string> CheckScales(const Throughput& throughput,
                                     std::optional<int64_t> total_scale) {
  const std::optional<int64_t> instance = throughput.instance_scale();
  if (!instance || !total_scale) return {};
  std::vector<std::string> problems;
  if (*instance > *total_scale) {
    problems.push_back(absl::StrCat("an instance has S = ", *instance,
                                    " units, more than the system's T = ", *total_scale));
  }
  if (*total_scale > throughput.total_count() * *instance) {
    problems.push_back(absl::StrCat("the system has T = ", *total_scale,
                                    " units, more than the M * S = ", throughput.total_count(),
                                    " * ", *instance, " that trained"));
  }
  if (*instance == *total_scale && throughput.total_count() > 1) {
    problems.push_back(absl::StrCat("the logs name the whole system, S = T = ", *instance,
                                    ", as the scale of one instance"));
  }
  return problems;
}

}  // namespace assay::rules
