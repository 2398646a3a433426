#include "common/analysis/entry.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace assay::analysis {
namespace {

constexpr double kSecondsPerMinute = 60;
constexpr double kMinutesPerHour = 60;

using Runs = std::vector<const RunTimes*>;

// Moments of what every run says; nullopt unless all of them say it.
std::optional<Moments> Collect(const Runs& runs,
                               const std::function<std::optional<double>(const RunTimes&)>& value) {
  std::vector<double> values;
  for (const RunTimes* run : runs)
    if (const std::optional<double> one = value(*run); one.has_value()) values.push_back(*one);
  if (values.size() != runs.size()) return std::nullopt;
  return MomentsOf(values);
}

std::vector<int> SelectRuns(const Entry& entry) {
  std::vector<std::optional<double>> run_s;
  for (const RunTimes& run : entry.runs)
    run_s.push_back(run.run_s);
  if (!entry.is_weak) return MiddleRuns(run_s);
  std::vector<int> all;
  for (size_t i = 0; i < run_s.size(); ++i)
    if (run_s[i]) all.push_back(static_cast<int>(i));
  return all;
}

// Staging off the clock is part of nothing.
double TimedStaging(const RunTimes& run) {
  return run.is_staging_timed ? run.staging_s.value_or(0) : 0;
}

std::optional<Breakdown> BreakdownOf(const Runs& runs) {
  double total = 0;
  Breakdown sum;
  for (const RunTimes* run : runs) {
    total += *run->run_s;
    sum.staging += TimedStaging(*run);
    sum.evaluation += run->evaluation_s;
    sum.training += run->all_training_s();
  }
  if (!(total > 0)) return std::nullopt;
  return Breakdown{.staging = sum.staging / total,
                   .evaluation = sum.evaluation / total,
                   .training = sum.training / total,
                   .extra = 1 - (sum.staging + sum.evaluation + sum.training) / total};
}

// Epochs whose records mark something else than a pass over the data say nothing of throughput.
bool EpochIsAPass(const Entry& entry) {
  return entry.benchmark != "openfold";
}

void AddThroughput(const Runs& runs, Characteristics* result) {
  const auto units = static_cast<double>(result->entry.units());
  if (units < 1) {
    result->notes.push_back("the number of accelerators or processors is not known");
    return;
  }
  const auto per_unit = [&](std::optional<double> rate) -> std::optional<double> {
    return rate ? std::optional<double>(*rate / units) : std::nullopt;
  };
  if (EpochIsAPass(result->entry)) {
    result->train_per_unit =
        Collect(runs, [&](const RunTimes& run) { return per_unit(run.train_samples_per_s()); });
  } else {
    result->notes.push_back("an epoch of its log is no pass over the training samples");
  }
  result->eval_per_unit =
      Collect(runs, [&](const RunTimes& run) { return per_unit(run.eval_samples_per_s()); });
  if (result->minutes) result->budget_h = result->minutes->mean * units / kMinutesPerHour;
}

void AddStaging(const Runs& runs, Characteristics* result) {
  result->staging_minutes = Collect(runs, [](const RunTimes& run) -> std::optional<double> {
    if (!run.staging_s) return std::nullopt;
    return *run.staging_s / kSecondsPerMinute;
  });
  const bool is_untimed = std::any_of(runs.begin(), runs.end(), [](const RunTimes* run) {
    return run->staging_s && !run->is_staging_timed;
  });
  if (is_untimed) result->notes.push_back("staged before the clock started: not in the time");
  if (!result->staging_minutes) return;
  if (!result->epoch_s || !(result->epoch_s->mean > 0)) return;
  result->staging_per_epoch =
      result->staging_minutes->mean * kSecondsPerMinute / result->epoch_s->mean;
}

void AddEstimate(const Runs& runs, Characteristics* result) {
  if (!result->epochs || !result->epoch_s || !(result->epoch_s->mean > 0)) return;
  double staging_s = 0;
  for (const RunTimes* run : runs)
    staging_s += TimedStaging(*run);
  const double per_epoch = staging_s / static_cast<double>(runs.size()) / result->epoch_s->mean;
  result->estimated_staging = per_epoch / (per_epoch + result->epochs->mean);
}

void AddBatchSize(const Runs& runs, Characteristics* result) {
  const std::optional<Moments> sizes =
      Collect(runs, [](const RunTimes& run) { return run.batch_size; });
  if (!sizes) return;
  const bool is_one = std::all_of(runs.begin(), runs.end(), [&](const RunTimes* run) {
    return *run->batch_size == *runs.front()->batch_size;
  });
  if (is_one) {
    result->batch_size = runs.front()->batch_size;
  } else {
    result->notes.push_back("its runs have different batch sizes");
  }
}

void NoteRuns(Characteristics* result) {
  const Entry& entry = result->entry;
  if (entry.runs_outside > 0)
    result->notes.push_back(
        absl::StrCat(entry.runs_outside, " runs are outside of the window that the score is of"));
  if (entry.is_weak) {
    result->notes.push_back("weak scaling: times are of one instance, none is left out");
    return;
  }
  if (entry.runs.size() < 3) result->notes.push_back("fewer than three runs: none is left out");
  const size_t wanted = entry.runs.size() < 3 ? entry.runs.size() : entry.runs.size() - 2;
  if (result->runs.size() < wanted)
    result->notes.push_back(
        absl::StrCat(wanted - result->runs.size(), " further runs have no end and do not count"));
}

}  // namespace

std::optional<double> Characteristics::compute_minutes() const {
  if (!epochs || !epoch_s) return std::nullopt;
  return epochs->mean * epoch_s->mean / kSecondsPerMinute;
}

std::optional<double> Characteristics::evaluation_rate() const {
  if (!epochs || !evaluations || !(epochs->mean > 0)) return std::nullopt;
  return evaluations->mean / epochs->mean;
}

std::optional<double> Characteristics::communication_intensity() const {
  if (!batch_size || entry.units() < 1) return std::nullopt;
  return static_cast<double>(entry.units()) / *batch_size;
}

Characteristics Characterize(Entry entry) {
  Characteristics result = {.entry = std::move(entry)};
  result.runs = SelectRuns(result.entry);
  NoteRuns(&result);
  Runs runs;
  for (const int run : result.runs)
    runs.push_back(&result.entry.runs[static_cast<size_t>(run)]);
  if (runs.empty()) {
    result.notes.push_back("no run has both run_start and run_stop");
    return result;
  }
  result.minutes =
      Collect(runs, [](const RunTimes& run) { return *run.run_s / kSecondsPerMinute; });
  result.epochs = Collect(runs, [](const RunTimes& run) -> std::optional<double> {
    if (run.epochs < 1) return std::nullopt;
    return static_cast<double>(run.epochs);
  });
  result.evaluations =
      Collect(runs, [](const RunTimes& run) { return static_cast<double>(run.evaluations); });
  result.epoch_s = Collect(runs, [](const RunTimes& run) -> std::optional<double> {
    if (run.closed_epochs < 1) return std::nullopt;
    return run.epoch_s / static_cast<double>(run.closed_epochs);
  });
  result.energy_joules = Collect(runs, [](const RunTimes& run) { return run.energy_joules; });
  AddBatchSize(runs, &result);
  AddThroughput(runs, &result);
  AddStaging(runs, &result);
  AddEstimate(runs, &result);
  result.breakdown = BreakdownOf(runs);
  return result;
}

}  // namespace assay::analysis
