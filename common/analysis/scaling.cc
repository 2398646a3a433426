#include "common/analysis/scaling.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "common/status.h"

namespace assay::analysis {
namespace {

constexpr double kSecondsPerMinute = 60;
constexpr double kSecondsPerHour = 3600;

// Of the runs that count; nullopt unless they all agree.
std::optional<double> CommonValue(const Characteristics& entry,
                                  std::optional<double> RunTimes::*member) {
  std::optional<double> value;
  for (const int index : entry.runs) {
    const std::optional<double>& one = entry.entry.runs[static_cast<size_t>(index)].*member;
    if (!one || (value && *value != *one)) return std::nullopt;
    value = one;
  }
  return value;
}

// The value at `x` of the power law through two points.
double PowerLaw(double x, double x0, double y0, double x1, double y1) {
  const double weight = std::log(x / x0) / std::log(x1 / x0);
  return y0 * std::pow(y1 / y0, weight);
}

// The machine and T_epoch of a configuration.
absl::Status AddThroughput(const Characteristics& base, const Configuration& configuration,
                           Prediction* prediction) {
  const auto base_units = static_cast<double>(base.entry.units());
  if (configuration.epoch_s) {
    prediction->epoch_s = *configuration.epoch_s;
    prediction->units = configuration.units.value_or(base_units);
    prediction->assumptions.push_back("T_epoch is the measurement given");
    return absl::OkStatus();
  }
  if (configuration.units)
    return absl::InvalidArgumentError(
        "another number of units at this batch size has another throughput per unit: measure an "
        "epoch there and give its time");
  if (!base.batch_size || !base.epoch_s || base_units < 1)
    return absl::InvalidArgumentError(
        absl::StrCat(base.entry.system,
                     " does not say its batch size, epoch times or number of units: give a "
                     "measured epoch time instead"));
  const double growth = configuration.batch_size / *base.batch_size;
  prediction->units = base_units * growth;
  prediction->epoch_s = base.epoch_s->mean / growth;
  prediction->assumptions.push_back(
      absl::StrFormat("weak scaling from %.0f units and batch %.0f: each unit keeps its throughput",
                      base_units, *base.batch_size));
  return absl::OkStatus();
}

void AddStaging(const Characteristics& base, Prediction* prediction) {
  if (!base.breakdown || !base.minutes || !(base.breakdown->staging > 0)) {
    prediction->assumptions.push_back("nothing is staged on the clock");
    return;
  }
  const auto base_units = static_cast<double>(base.entry.units());
  const double measured = base.breakdown->staging * base.minutes->mean;
  prediction->staging_minutes = base_units > 0 && prediction->units > 0
                                    ? measured * base_units / prediction->units
                                    : measured;
  prediction->assumptions.push_back("each unit stages its share as fast as measured");
}

}  // namespace

ScalingPoint ScalingOf(const Characteristics& entry) {
  ScalingPoint point;
  const auto units = static_cast<double>(entry.entry.units());
  if (entry.train_per_unit) point.train_samples_per_s = entry.train_per_unit->mean * units;
  if (entry.eval_per_unit) point.eval_samples_per_s = entry.eval_per_unit->mean * units;
  point.compute_minutes = entry.compute_minutes();
  // Entries whose epochs are no passes over the data say nothing of samples.
  if (!entry.train_per_unit) return point;
  point.train_samples = CommonValue(entry, &RunTimes::train_samples);
  const std::optional<double> eval = CommonValue(entry, &RunTimes::eval_samples);
  const std::optional<double> rate = entry.evaluation_rate();
  if (point.train_samples && eval && rate)
    point.epoch_samples = *point.train_samples + *eval * *rate;
  if (entry.epoch_s && entry.epoch_s->mean > 0) {
    point.epochs_per_h = kSecondsPerHour / entry.epoch_s->mean;
    if (point.epoch_samples) point.samples_per_s = *point.epoch_samples / entry.epoch_s->mean;
  }
  if (point.train_samples && entry.epochs && entry.batch_size)
    point.steps = entry.epochs->mean * *point.train_samples / *entry.batch_size;
  return point;
}

std::vector<std::optional<ScalingEfficiency>> ScalingEfficiencies(
    std::span<const Characteristics> entries) {
  const auto is_alike = [](const Characteristics& a, const Characteristics& b) {
    return a.entry.benchmark == b.entry.benchmark && a.entry.organization == b.entry.organization &&
           a.entry.unit_model == b.entry.unit_model && b.train_per_unit.has_value();
  };
  std::vector<std::optional<ScalingEfficiency>> efficiencies(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].train_per_unit) continue;
    size_t base = i;
    bool has_other_size = false;
    for (size_t k = 0; k < entries.size(); ++k) {
      if (!is_alike(entries[i], entries[k])) continue;
      has_other_size = has_other_size || entries[k].entry.units() != entries[i].entry.units();
      if (entries[k].entry.units() < entries[base].entry.units()) base = k;
    }
    if (has_other_size)
      efficiencies[i] = {
          .share = entries[i].train_per_unit->mean / entries[base].train_per_unit->mean,
          .base = base};
  }
  return efficiencies;
}

std::vector<EpochsAtBatch> EpochScaling(std::span<const Characteristics> entries) {
  struct Pool {
    std::vector<double> epochs;
    std::vector<std::string> systems;
  };
  std::map<double, Pool> pools;
  for (const Characteristics& entry : entries) {
    if (!entry.batch_size || !entry.epochs) continue;
    Pool& pool = pools[*entry.batch_size];
    pool.systems.push_back(entry.entry.system);
    for (const int run : entry.runs)
      pool.epochs.push_back(static_cast<double>(entry.entry.runs[static_cast<size_t>(run)].epochs));
  }
  std::vector<EpochsAtBatch> result;
  for (const auto& [batch_size, pool] : pools)
    result.push_back(
        {.batch_size = batch_size, .epochs = *MomentsOf(pool.epochs), .systems = pool.systems});
  return result;
}

absl::StatusOr<EpochEstimate> EpochsFor(std::span<const EpochsAtBatch> known, double batch_size) {
  if (known.empty())
    return absl::NotFoundError("no entry says how many epochs its batch size takes");
  const auto above = std::find_if(known.begin(), known.end(), [&](const EpochsAtBatch& at) {
    return at.batch_size >= batch_size;
  });
  if (above == known.end() || (above == known.begin() && above->batch_size > batch_size))
    return absl::OutOfRangeError(
        absl::StrFormat("epochs are known for batch sizes from %.0f to %.0f; for %.0f give the "
                        "epochs yourself",
                        known.front().batch_size, known.back().batch_size, batch_size));
  if (above->batch_size == batch_size)
    return EpochEstimate{
        .mean = above->epochs.mean,
        .sd = above->epochs.sd.value_or(0),
        .basis = absl::StrCat("measured by ", absl::StrJoin(above->systems, ", "))};
  const EpochsAtBatch& below = *(above - 1);
  const double x0 = below.batch_size;
  const double x1 = above->batch_size;
  EpochEstimate estimate = {
      .mean = PowerLaw(batch_size, x0, below.epochs.mean, x1, above->epochs.mean),
      .basis = absl::StrFormat("power law between batch sizes %.0f and %.0f", x0, x1)};
  // The relative spread of the worse neighbour.
  const auto relative = [](const Moments& moments) {
    return moments.sd.value_or(0) / moments.mean;
  };
  estimate.sd = estimate.mean * std::max(relative(below.epochs), relative(above->epochs));
  return estimate;
}

absl::StatusOr<Prediction> Predict(const Characteristics& base,
                                   std::span<const EpochsAtBatch> known,
                                   const Configuration& configuration) {
  Prediction prediction;
  if (configuration.epochs) {
    prediction.epochs = {.mean = *configuration.epochs, .basis = "given"};
  } else {
    ASSIGN_OR_RETURN(prediction.epochs, EpochsFor(known, configuration.batch_size));
  }
  RETURN_IF_ERROR(AddThroughput(base, configuration, &prediction));
  AddStaging(base, &prediction);
  prediction.assumptions.push_back("T_extra of equation 1 is nothing");
  prediction.compute_minutes = prediction.epochs.mean * prediction.epoch_s / kSecondsPerMinute;
  prediction.minutes = prediction.staging_minutes + prediction.compute_minutes;
  const double relative_epoch_s = !configuration.epoch_s && base.epoch_s && base.epoch_s->sd
                                      ? *base.epoch_s->sd / base.epoch_s->mean
                                      : 0;
  const double relative_epochs =
      prediction.epochs.mean > 0 ? prediction.epochs.sd / prediction.epochs.mean : 0;
  prediction.sd_minutes =
      prediction.compute_minutes * std::hypot(relative_epochs, relative_epoch_s);
  return prediction;
}

}  // namespace assay::analysis
