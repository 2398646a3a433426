// When the records of a run's log arrived on the node, beside the times that they are stamped with:
// of the native trainer's log and of programs' alike. Pure functions of their arguments.

#ifndef COMMON_RULES_ARRIVALS_H_
#define COMMON_RULES_ARRIVALS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/mllog.h"
#include "common/rules/finding.h"
#include "common/rules/text_rule.h"

namespace assay::rules {

// The rules, by id.
std::span<const TextRule> ArrivalRules();

// A record of the log as it is stamped.
struct TimedRecord {
  std::string key;     // init_start, staging_start, staging_stop, run_start or run_stop, which time
                       // the run; empty of all others
  int64_t line = 0;    // of the log, from 1
  double time_ms = 0;  // as logged; what is no finite number is 0

  bool TimesTheRun() const { return !key.empty(); }
};

// The record in a line of a log, if there is one.
std::optional<TimedRecord> ReadTimedRecord(absl::string_view line, int64_t line_number);

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

// Of each kind that are kept. A sane log has a handful that time the run; of one that repeats
// itself the first show enough. Of the others those count that are stamped wrongly.
inline constexpr size_t kArrivalsMax = 1000;
inline constexpr size_t kStrayArrivalsMax = 100;

// A clock is read after what it stamps has been read, so nothing honest comes before its stamp;
// these are for stamps that are rounded up and for reading two clocks.
inline constexpr int64_t kFutureToleranceMs = 2;
inline constexpr int64_t kLateToleranceMs = 5000;
inline constexpr int64_t kLateWarningMs = 1000;

// Whether the stamp is that of the arrival, within 2 ms before it was written and 1 s after.
bool IsStampedRight(const Arrival& arrival);

// The records that time the run, of a log that comes in pieces of any size. Not thread-safe.
class TimedLog {
 public:
  void Add(absl::string_view bytes);
  // In the log's order; the first kArrivalsMax. Call once; Add nothing afterwards.
  std::vector<TimedRecord> Finish();

 private:
  void TakeLine(absl::string_view line, bool is_too_long);

  std::vector<TimedRecord> records_;
  MllogLineStream lines_;
  int64_t line_ = 0;
};

// R-TIM-031 for a stamp that is more than 2 ms after its arrival or more than 5 s before it;
// R-TIM-032, a warning, for more than 1 s before it. By how much the node saw it late, and a wall
// clock that was set since the last arrival, are allowed for. Records that do not time the run have
// one R-TIM-032 together. R-TIM-034 where what is `logged` in the end is not what arrived.
std::vector<Finding> CheckArrivals(const std::vector<Arrival>& arrivals,
                                   const std::vector<TimedRecord>& logged);

// R-TIM-033, a warning: the node has not seen when the log's records arrived.
Finding NoArrivals();

// One line of JSON for each, and back. Lines that are none are left out.
std::string ArrivalsText(const std::vector<Arrival>& arrivals);
std::vector<Arrival> ReadArrivals(absl::string_view text);

}  // namespace assay::rules

#endif  // COMMON_RULES_ARRIVALS_H_
