// The paper's view of an entry: where its time went, how fast it trained, what it cost. (MLPerf HPC
// paper, sections 4.1.1 to 4.1.3, Tables 5 and 6, Figure 1, equations 1 and 2.)

#ifndef COMMON_ANALYSIS_ENTRY_H_
#define COMMON_ANALYSIS_ENTRY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/analysis/run_times.h"
#include "common/analysis/statistics.h"

namespace assay::analysis {

// One benchmark on one system, with its runs.
struct Entry {
  std::string organization, system, benchmark, division;
  bool is_weak = false;      // many instances at once: no run is left out
  int64_t processors = 0;    // of all nodes of one run
  int64_t accelerators = 0;  //
  std::string unit_model;    // of what computes
  std::vector<RunTimes> runs;
  int runs_outside = 0;                 // judged, but outside of the window that the score is of
  std::optional<double> score_minutes;  // by the round's rule

  // What throughput is divided by: accelerators, else processors; 0: unknown.
  int64_t units() const { return accelerators > 0 ? accelerators : processors; }
};

// Shares of the time to solution, from 0 to 1, which add up to 1.
struct Breakdown {
  double staging = 0, evaluation = 0, training = 0;
  double extra = 0;  // start-up, compilation, the end: T_extra of equation 1
};

// Over the runs that MiddleRuns leaves. What the logs do not say is empty.
struct Characteristics {
  Entry entry;                     // without its runs' logs
  std::vector<int> runs;           // those that count
  std::optional<Moments> minutes;  // time to solution
  std::optional<Moments> epochs;
  std::optional<Moments> evaluations;
  std::optional<Moments> epoch_s;           // T_epoch: training and evaluation of an epoch
  std::optional<Moments> staging_minutes;   // none: no run logs it
  std::optional<double> staging_per_epoch;  // mean staging time / mean epoch time
  std::optional<Moments> train_per_unit;    // samples/s for each accelerator or processor
  std::optional<Moments> eval_per_unit;     //
  std::optional<double> batch_size;         // none where runs differ
  std::optional<double> budget_h;           // unit hours of one run
  std::optional<Moments> energy_joules;     // to solution; none unless all runs have it
  std::optional<Breakdown> breakdown;
  std::optional<double> estimated_staging;  // its share by equation 2
  std::vector<std::string> notes;           // what is missing or unusual, in sentences

  // T_compute of equation 1: epochs times T_epoch.
  std::optional<double> compute_minutes() const;
  // Evaluations in an epoch.
  std::optional<double> evaluation_rate() const;
  // Units for each sample of a step: what the paper calls communication intensity.
  std::optional<double> communication_intensity() const;
};

Characteristics Characterize(Entry entry);

}  // namespace assay::analysis

#endif  // COMMON_ANALYSIS_ENTRY_H_
