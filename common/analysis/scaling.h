// How epochs grow with the batch size and throughput with the machine, and the two joined on the
// batch size: the time to solution of a configuration that nobody has run. (MLPerf HPC paper,
// section 4.1.2 and Figure 2.)

#ifndef COMMON_ANALYSIS_SCALING_H_
#define COMMON_ANALYSIS_SCALING_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "common/analysis/entry.h"

namespace assay::analysis {

// What Figure 2 shows of an entry.
struct ScalingPoint {
  std::optional<double> train_samples_per_s, eval_samples_per_s;  // of the whole system
  std::optional<double> samples_per_s;    // training and evaluation as an epoch mixes them
  std::optional<double> epochs_per_h;     // 1 / T_epoch
  std::optional<double> steps;            // optimizer steps to solution
  std::optional<double> compute_minutes;  // epochs * T_epoch
  std::optional<double> train_samples;    // of an epoch
  std::optional<double> epoch_samples;    // those and what is evaluated in an epoch, on average
};
ScalingPoint ScalingOf(const Characteristics& entry);

// How much of the training throughput of a unit is left on a larger part of a machine.
struct ScalingEfficiency {
  double share = 1;  // throughput per unit to that of the base; 1: all of it
  size_t base = 0;   // position of the entry with the fewest units
};

// For each entry its efficiency to the smallest of the same benchmark, organisation and unit model,
// whatever the division; none where there is no other of a different size, or the throughput is not
// known. Weak scaling, if the batch of a unit is the same; else a mixture of weak and strong.
std::vector<std::optional<ScalingEfficiency>> ScalingEfficiencies(
    std::span<const Characteristics> entries);

// The epochs that a batch size takes: all counted runs of all entries with it, whatever the system,
// for convergence does not depend on it.
struct EpochsAtBatch {
  double batch_size = 0;
  Moments epochs;
  std::vector<std::string> systems;
};

// Ascending by batch size. Entries of one benchmark, with hyperparameters that are comparable:
// those of one division. Entries without epochs or batch size are left out.
std::vector<EpochsAtBatch> EpochScaling(std::span<const Characteristics> entries);

struct EpochEstimate {
  double mean = 0;
  double sd = 0;      // 0 where it is not known
  std::string basis;  // where it comes from, in words
};

// Epochs for any batch size between the smallest and the largest known: as measured, or by a power
// law between the two neighbours. OUT_OF_RANGE beyond them: convergence there is not known.
// NOT_FOUND if nothing is known.
absl::StatusOr<EpochEstimate> EpochsFor(std::span<const EpochsAtBatch> known, double batch_size);

// What to predict: a batch size, and what is known about it.
struct Configuration {
  double batch_size = 0;
  std::optional<double> epochs;   // known, else by EpochsFor
  std::optional<double> epoch_s;  // measured T_epoch, else by weak scaling
  std::optional<double> units;    // that epoch_s was measured with
};

struct Prediction {
  double units = 0;
  EpochEstimate epochs;
  double epoch_s = 0;
  double staging_minutes = 0;
  double compute_minutes = 0;
  double minutes = 0;     // time to solution
  double sd_minutes = 0;  // from the spread of epochs and of T_epoch between runs
  std::vector<std::string> assumptions;
};

// Predicts from what `base` measured. Weak scaling keeps the batch of a unit and so its throughput:
// the machine grows with the batch. INVALID_ARGUMENT if the base lacks what that takes, or units
// are given without an epoch time; else the errors of EpochsFor.
absl::StatusOr<Prediction> Predict(const Characteristics& base,
                                   std::span<const EpochsAtBatch> known,
                                   const Configuration& configuration);

}  // namespace assay::analysis

#endif  // COMMON_ANALYSIS_SCALING_H_
