// Collects the facts of a log from its records, one by one.

#ifndef COMMON_RULES_FACT_COLLECTOR_H_
#define COMMON_RULES_FACT_COLLECTOR_H_

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/rules/check.h"
#include "common/rules/condition.h"

namespace assay::rules {

// The keys that facts come from; RuleSet numbers them first, so a FactKey is a key number.
enum class FactKey {
  kOrg,
  kPlatform,
  kSubmissionStatus,
  kDivision,
  kBenchmark,
  kRunStart,
  kRunStop,
  kInitStart,
  kInitStop,
  kStagingStart,
  kStagingStop,
  kEpochStart,
  kSeed,
  kGlobalBatchSize,
  kNumberOfNodes,
  kAcceleratorsPerNode,
  kTrainSamples,
  kEvalSamples,
  kOptName,
};
inline constexpr std::array<absl::string_view, 19> kFactKeys = {"submission_org",
                                                                "submission_platform",
                                                                "submission_status",
                                                                "submission_division",
                                                                "submission_benchmark",
                                                                "run_start",
                                                                "run_stop",
                                                                "init_start",
                                                                "init_stop",
                                                                "staging_start",
                                                                "staging_stop",
                                                                "epoch_start",
                                                                "seed",
                                                                "global_batch_size",
                                                                "number_of_nodes",
                                                                "accelerators_per_node",
                                                                "train_samples",
                                                                "eval_samples",
                                                                "opt_name"};

class FactCollector {
 public:
  explicit FactCollector(const RuleSet& rules);
  // Records of other keys than kFactKeys and the benchmarks' qualities are ignored.
  void Add(const Record& record);
  // The facts of all records so far; the counts of records and errors are the caller's.
  Facts Get() const;

 private:
  // What the quality lines say for one benchmark of the round.
  struct Quality {
    std::optional<double> last_before_stop, best;
    bool reached_target = false;
  };

  void AddQuality(const Record& record);
  void AddSeed(const Record& record);
  void AddTiming(FactKey key, const Record& record);
  void AddRunStop(const Record& record);
  void PairStaging();

  const RuleSet* rules_;
  Facts facts_;
  std::vector<Quality> qualities_;  // by benchmark
  std::vector<int> quality_keys_;   // likewise, as RuleSet numbers them
  size_t seed_bytes_ = 0;
  std::deque<double> staging_starts_, staging_stops_;  // without a partner yet
  std::optional<double> init_start_ms_, latest_run_start_ms_, latest_run_stop_ms_;
  bool has_run_stop_ = false;
};

}  // namespace assay::rules

#endif  // COMMON_RULES_FACT_COLLECTOR_H_
