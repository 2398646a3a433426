// The throughput of a weak-scaling set: M' models trained side by side, each on S units of a system
// of T, in the time from the first start to the last stop (rules specification, section 5.2).

#ifndef COMMON_RULES_THROUGHPUT_H_
#define COMMON_RULES_THROUGHPUT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/rules/check.h"

namespace assay::rules {

// One model of a set, as far as the throughput goes.
struct ModelRun {
  bool compliant = false;
  std::optional<double> run_start_ms, run_stop_ms;
  std::optional<int64_t> instance_scale;  // units that trained it
};

// True if it counts.
bool IsGood(const ModelRun& run);

// number_of_nodes * max(accelerators_per_node, 1), as logged; none where the log names no nodes.
std::optional<int64_t> InstanceScale(const Facts& facts);

ModelRun ModelRunOf(const CheckResult& result);

struct Throughput {
  bool is_scored = false;  // else see `reason`
  std::string reason;      // why there is no score; empty otherwise
  int model_count = 0;     // M': models that count
  int failed_count = 0;    // logs that fail the check, so do not count
  int pruned_count = 0;    // trained, and left out by the submitter as the rules allow
  std::vector<int64_t> instance_scales;       // S: the different ones, rising; one is as it should
  std::optional<double> time_to_all_minutes;  // TTTa; known also where there is no score

  int total_count() const { return model_count + pruned_count; }  // M
  std::optional<int64_t> instance_scale() const {
    return instance_scales.size() == 1 ? std::optional(instance_scales[0]) : std::nullopt;
  }
  // Of a set that is scored.
  double models_per_minute() const { return model_count / *time_to_all_minutes; }
};

// Failing logs do not count, and their number has no limit; `models_required` must remain. There is
// no olympic mean and no scaling factor. Logs that disagree on S leave no score.
Throughput ScoreThroughput(std::span<const ModelRun> runs, int models_required, int pruned_count);

// One way to leave good models out: of all subsets of `model_count` the one that took least time.
struct Pruning {
  int model_count = 0;  // M'
  double time_to_all_minutes = 0;
  std::vector<size_t> left_out;  // positions of compliant models, rising
  double models_per_minute() const { return model_count / time_to_all_minutes; }
};

// For each M' from all models that count down to `models_required`, which the submitter may choose
// once (HPC rules, "Throughput"). Empty if too few count.
std::vector<Pruning> Prunings(std::span<const ModelRun> runs, int models_required);

// What is odd about the scales, in sentences: S <= T <= M * S must hold.
std::vector<std::string> CheckScales(const Throughput& throughput,
                                     std::optional<int64_t> total_scale);

}  // namespace assay::rules

#endif  // COMMON_RULES_THROUGHPUT_H_
