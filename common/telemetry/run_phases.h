// What a run did when, by its log. Pure.

#ifndef COMMON_TELEMETRY_RUN_PHASES_H_
#define COMMON_TELEMETRY_RUN_PHASES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/mllog.h"

namespace assay::telemetry {

// By the clock that stamps the log, in milliseconds since the Unix epoch.
struct Interval {
  int64_t begin_ms = 0;
  int64_t end_ms = 0;
  bool operator==(const Interval&) const = default;
};

// An interval counts if both of its ends were logged, an open one not at all.
struct RunPhases {
  std::optional<int64_t> run_start_ms;  // the last before the first run_stop
  std::optional<int64_t> run_stop_ms;
  std::vector<Interval> init;
  std::vector<Interval> staging;
  std::vector<Interval> epochs;  // the first is epoch 1, whatever number it was logged with
  std::vector<Interval> evaluations;
  std::optional<int64_t> train_samples;  // of an epoch
  // Of a cache of the nodes that staging has used, as it declared (metadata cache_hit_bytes).
  int64_t declared_cache_bytes = 0;
};

// Reads a log that comes in pieces of any size. Not thread-safe.
class PhaseReader {
 public:
  void Add(absl::string_view bytes);
  // Call once; Add nothing afterwards.
  RunPhases Finish();

 private:
  struct Open {
    std::optional<int64_t> init, staging, epoch, evaluation;
  };
  void Take(absl::string_view line);
  void TakeEnds(absl::string_view key, int64_t time_ms);

  MllogLineStream lines_;
  RunPhases phases_;
  Open open_;
};

RunPhases PhasesOf(absl::string_view log);

}  // namespace assay::telemetry

#endif  // COMMON_TELEMETRY_RUN_PHASES_H_
