// What must be known of a benchmark's settings where its workload is not: by clients that look for
// mistyped names, and by the rules about ranks. The trainer reads, checks and logs them.
//
// A benchmark has one file in benchmarks/.

#ifndef COMMON_RULES_BENCHMARK_SETTINGS_H_
#define COMMON_RULES_BENCHMARK_SETTINGS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace assay::rules {

struct BenchmarkSettings {
  std::string benchmark;
  std::vector<std::string> hyperparameters;  // beyond those of every benchmark
  // Of samples that ranks can share: the setting that is the edge of one, and what the edge of a
  // block of it must be a multiple of. Empty: they cannot be divided.
  std::string shared_edge;
  int64_t block_unit = 0;

  bool IsDivisible() const { return block_unit > 0; }
};

// Of all benchmarks, by name.
std::span<const BenchmarkSettings> AllBenchmarkSettings();

// Null: there are none of that name.
const BenchmarkSettings* FindBenchmarkSettings(absl::string_view benchmark);

// The hyperparameters, by their name in the log, that a workload of ours reads.
std::vector<std::string> KnownHyperparameters();

}  // namespace assay::rules

#endif  // COMMON_RULES_BENCHMARK_SETTINGS_H_
