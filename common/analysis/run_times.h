// What a run did with its time, read from its log: staging, training, evaluation.

#ifndef COMMON_ANALYSIS_RUN_TIMES_H_
#define COMMON_ANALYSIS_RUN_TIMES_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

#include "common/rules/check.h"

namespace assay::analysis {

// Seconds throughout. An interval is the i-th start with the i-th stop of its kind, for real logs
// hold pairs whose lines are swapped; what begins after the clock has stopped does not count.
struct RunTimes {
  std::optional<double> run_s;      // run_stop - run_start
  std::optional<double> staging_s;  // all pairs; nullopt: the log has no staging keys
  bool is_staging_timed = true;     // staging began on the clock
  int64_t epochs = 0;               // begun
  int64_t closed_epochs = 0;        // ended as well
  double epoch_s = 0;               // sum of the closed ones
  double open_epoch_s = 0;          // of one that was cut by run_stop, until then
  int64_t evaluations = 0;
  double evaluation_s = 0;                            // sum
  double evaluation_in_epoch_s = 0;                   // the part of it inside closed epochs
  double evaluation_in_open_s = 0;                    // the part of it inside the open one
  std::optional<double> batch_size;                   // global
  std::optional<double> train_samples, eval_samples;  // of one epoch, one evaluation
  std::optional<double> quality;                      // the best that the log shows
  bool reached_target = false;
  // What its nodes drew; no log says it, who has the run's record fills it in.
  std::optional<double> energy_joules;

  // In closed epochs, without evaluation: what throughput is measured by.
  double training_s() const { return epoch_s - evaluation_in_epoch_s; }
  // All training, that of an epoch cut short included: what the time went into.
  double all_training_s() const { return training_s() + open_epoch_s - evaluation_in_open_s; }
  // Samples per second of the whole system; nullopt where the log does not say.
  std::optional<double> train_samples_per_s() const;
  std::optional<double> eval_samples_per_s() const;
};

// Reads a log that has been judged already; `facts` are those of its verdict. Never fails: what a
// log does not say stays empty.
RunTimes ReadRunTimes(absl::string_view log, const rules::Facts& facts);

}  // namespace assay::analysis

#endif  // COMMON_ANALYSIS_RUN_TIMES_H_
