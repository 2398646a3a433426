// The log of somebody else's program beside what its submission says, and beside when its lines
// arrived on the node: what the native trainer cannot get wrong. Pure functions of their arguments.

#ifndef COMMON_RULES_PROGRAM_LOG_H_
#define COMMON_RULES_PROGRAM_LOG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/json_value.h"
#include "common/mllog.h"
#include "common/rules/finding.h"
#include "common/rules/text_rule.h"

namespace assay::rules {

// The rules, by id.
std::span<const TextRule> ProgramLogRules();

// What the run was given, and must say.
struct LoggedFacts {
  std::string organization, system, benchmark, division, status;
  int64_t seed = 0;
  int64_t node_count = 0;
  std::optional<int64_t> train_samples;  // nullopt: not known, and not compared
  std::optional<int64_t> eval_samples;
  std::map<std::string, JsonValue> hyperparameters;  // by their key in the log
};

// A record of the log whose time is compared.
struct TimedRecord {
  std::string key;     // init_start, staging_start, staging_stop, run_start, run_stop
  int64_t line = 0;    // of the log, from 1
  double time_ms = 0;  // as logged; what is no finite number is 0
};

// When one arrived on the node.
struct Arrival {
  TimedRecord record;
  int64_t wall_us = 0;  // by the node's clock, which stamps the log too
  int64_t mono_ns = 0;  // by one that nobody sets
  int64_t raw_ns = 0;   // by the hardware's, which nobody can slow down either; 0: not known
  int64_t boot_ns = 0;  // by one that counts while the node is suspended; 0: not known
  int64_t late_ns = 0;  // it may have been written so much earlier, at most

  // By the hardware's clock, with the time that the node was suspended.
  int64_t NodeNs() const { return raw_ns == 0 ? mono_ns : raw_ns + (boot_ns - mono_ns); }
};

// A sane log has a handful; of one that repeats itself the first show enough.
inline constexpr size_t kArrivalsMax = 1000;

// Compares a log that comes in pieces of any size. Not thread-safe.
//   R-WRK-021 identity; 022 seed; 023 nodes; 024 samples; 025 a hyperparameter that is another or
//   missing; 026, a warning, one that the submission does not have.
class ProgramLogCheck {
 public:
  explicit ProgramLogCheck(const LoggedFacts& facts);

  void Add(absl::string_view bytes);
  // One finding for each key. Call once; Add nothing afterwards.
  std::vector<Finding> Finish();
  // The records whose time is compared, in the log's order; the first kArrivalsMax.
  const std::vector<TimedRecord>& timed() const { return timed_; }

 private:
  struct Expected {
    const char* rule;
    JsonValue value;
    bool is_seen = false;
    std::optional<Finding> finding;  // of the first line that differs
  };

  void TakeLine(absl::string_view line, bool is_too_long);

  std::map<std::string, Expected> expected_;
  std::map<std::string, Finding> unknown_;  // hyperparameters beyond the submission's
  std::vector<TimedRecord> timed_;
  MllogLineStream lines_;
  int64_t line_ = 0;
};

// The record in a line of a log, if its time is compared.
std::optional<TimedRecord> ReadTimedRecord(absl::string_view line, int64_t line_number);

inline constexpr int64_t kFutureToleranceMs = 10;
inline constexpr int64_t kLateToleranceMs = 5000;
inline constexpr int64_t kLateWarningMs = 1000;

// R-TIM-031 for a stamp that is more than 10 ms after its arrival or more than 5 s before it;
// R-TIM-032, a warning, for more than 1 s before it. R-TIM-034 where what is `logged` in the end is
// not what arrived.
std::vector<Finding> CheckArrivals(const std::vector<Arrival>& arrivals,
                                   const std::vector<TimedRecord>& logged);

// R-TIM-033, a warning: the node has not seen when the log's records arrived.
Finding NoArrivals();

// R-WRK-027, a warning: this file of a run's was logged beside the log that counts.
Finding LoggedElsewhere(absl::string_view file, int64_t size_bytes);

// One line of JSON for each, and back. Lines that are none are left out.
std::string ArrivalsText(const std::vector<Arrival>& arrivals);
std::vector<Arrival> ReadArrivals(absl::string_view text);

}  // namespace assay::rules

#endif  // COMMON_RULES_PROGRAM_LOG_H_
