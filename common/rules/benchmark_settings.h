// What must be known of a benchmark's settings where its workload is not: by clients that look for
// mistyped names, and by the rules about ranks and settings (ranks.h, trainer_settings.h). The
// trainer reads, checks and logs them.
//
// A benchmark has one file in benchmarks/.

#ifndef COMMON_RULES_BENCHMARK_SETTINGS_H_
#define COMMON_RULES_BENCHMARK_SETTINGS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/rules/setting.h"

namespace assay::rules {

// A backend that does not run a benchmark, and what to choose in its place.
struct ExcludedBackend {
  std::string name;
  std::string remedy;
};

struct BenchmarkSettings {
  std::string benchmark;
  std::vector<Setting> settings;  // beyond those of every benchmark, or narrower
  int64_t local_batch_max = 0;    // samples of a rank, or of ranks that share samples
  // Whether both splits must be multiples of the global batch. Else the training split has to fill
  // one.
  bool has_whole_batches = false;
  // Of samples that ranks can share: the setting that is the edge of one, and what the edge of a
  // block of it must be a multiple of. Empty: they cannot be divided.
  std::string shared_edge;
  int64_t block_unit = 0;

  std::vector<ExcludedBackend> excluded_backends;

  bool IsDivisible() const { return block_unit > 0; }
  // Also of those of every benchmark; null: its trainer reads no such hyperparameter.
  const Setting* Find(absl::string_view key) const;
};

// Of all benchmarks, by name.
std::span<const BenchmarkSettings> AllBenchmarkSettings();

// Null: there are none of that name.
const BenchmarkSettings* FindBenchmarkSettings(absl::string_view benchmark);

// The hyperparameters, by their name in the log, that a workload of ours reads.
std::vector<std::string> KnownHyperparameters();

}  // namespace assay::rules

#endif  // COMMON_RULES_BENCHMARK_SETTINGS_H_
