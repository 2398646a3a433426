// How fast logs are read and judged. Lines per second are items_per_second; share_of_raw_parse is
// the rate of a check over the rate of reading the same lines alone.
//
//   build/dev/bin/rules_bench

#include <time.h>

#include <algorithm>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"

#include "common/mllog.h"
#include "common/rules/check.h"
#include "common/rules/registry.h"

namespace assay::rules {
namespace {

// A DeepCAM log of `steps` steps: three step records for keys without a rule per step, an
// evaluation every 100, as the published ones.
std::string DeepcamLog(int steps) {
  int64_t now_ms = 1600000000000;
  std::string log;
  MllogWriter writer([&] { return now_ms += 7; },
                     [&](absl::string_view line) { log.append(line.data(), line.size()); });
  writer.Event("submission_org", "LBNL");
  writer.Event("submission_platform", "platform");
  writer.Event("submission_division", "closed");
  writer.Event("submission_status", "onprem");
  writer.Event("submission_benchmark", "deepcam");
  writer.Event("cache_clear");
  writer.Start("init_start");
  writer.End("init_stop");
  writer.Start("run_start");
  for (int step = 0; step < steps; ++step) {
    const JsonObject where = {{"epoch_num", step / 100 + 1}, {"step_num", step}};
    writer.Event("learning_rate", 0.00012375 * (step + 1), where);
    writer.Event("train_accuracy", 0.15062159299850464, where);
    writer.Event("train_loss", 1.3293601274490356, where);
    if (step % 100 == 99) writer.Event("eval_accuracy", 0.818164358857534, where);
  }
  writer.Event("eval_accuracy", 0.8203, {{"epoch_num", steps / 100}});
  writer.End("run_stop", {}, {{"status", "success"}});
  return log;
}

// A log in which every line has a rule.
std::string RuledLog(int epochs) {
  int64_t now_ms = 1600000000000;
  std::string log;
  MllogWriter writer([&] { return now_ms += 7; },
                     [&](absl::string_view line) { log.append(line.data(), line.size()); });
  writer.Event("submission_division", "closed");
  writer.Event("submission_benchmark", "cosmoflow");
  for (int epoch = 0; epoch < epochs; ++epoch) {
    writer.Start("epoch_start", {}, {{"epoch_num", epoch}});
    writer.Start("eval_start", {}, {{"epoch_num", epoch}});
    writer.Event("eval_error", 0.34239912033081055, {{"epoch_num", epoch}});
    writer.End("eval_stop", {}, {{"epoch_num", epoch}});
    writer.End("epoch_stop", {}, {{"epoch_num", epoch}});
  }
  return log;
}

int64_t ReadAll(const std::string& log) {
  MllogLines lines(log);
  int64_t records = 0;
  for (absl::string_view line; lines.Next(&line);) {
    records += ReadMllogLine(line).outcome == MllogOutcome::kRecord;
  }
  return records;
}

// Processor seconds of this thread: the wall clock would count the neighbours too.
double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// What reading `log` alone takes, the best of several.
double ReadSeconds(const std::string& log) {
  double best = 1e9;
  for (int i = 0; i < 20; ++i) {
    const double begin = CpuSeconds();
    benchmark::DoNotOptimize(ReadAll(log));
    best = std::min(best, CpuSeconds() - begin);
  }
  return best;
}

void CountLines(const std::string& log, benchmark::State* state) {
  const int64_t lines = ReadAll(log);
  state->SetItemsProcessed(state->iterations() * lines);
  state->SetBytesProcessed(state->iterations() * static_cast<int64_t>(log.size()));
}

void CheckLog(const std::string& log, benchmark::State* state) {
  const RuleSet& rules = *FindRuleSet("hpc-3.0.0");
  const double begin = CpuSeconds();
  for (auto _ : *state)
    benchmark::DoNotOptimize(Check(log, rules));
  const double check_seconds = (CpuSeconds() - begin) / static_cast<double>(state->iterations());
  CountLines(log, state);
  state->counters["share_of_raw_parse"] = ReadSeconds(log) / check_seconds;
}

void BM_ReadLines(benchmark::State& state) {
  const std::string log = DeepcamLog(3000);
  for (auto _ : state)
    benchmark::DoNotOptimize(ReadAll(log));
  CountLines(log, &state);
}
BENCHMARK(BM_ReadLines);

void BM_CheckMostlyUnruled(benchmark::State& state) {
  CheckLog(DeepcamLog(3000), &state);
}
BENCHMARK(BM_CheckMostlyUnruled);

void BM_CheckAllRuled(benchmark::State& state) {
  CheckLog(RuledLog(2000), &state);
}
BENCHMARK(BM_CheckAllRuled);

// What the agent pays for each line of a run that it follows.
void BM_LiveEvent(benchmark::State& state) {
  const std::string log = DeepcamLog(3000);
  std::vector<absl::string_view> lines;
  MllogLines all(log);
  for (absl::string_view line; all.Next(&line);)
    lines.push_back(line);
  const RuleSet& rules = *FindRuleSet("hpc-3.0.0");
  for (auto _ : state) {
    LiveChecker checker(rules);
    for (const absl::string_view line : lines)
      benchmark::DoNotOptimize(checker.AddLine(line));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(lines.size()));
}
BENCHMARK(BM_LiveEvent);

void BM_Write(benchmark::State& state) {
  const MllogRecord record = {.time_ms = 1600000000000,
                              .key = "train_loss",
                              .value = 1.3293601274490356,
                              .file = "train.cc",
                              .lineno = 7,
                              .metadata = {{"epoch_num", 3}, {"step_num", 911}}};
  for (auto _ : state)
    benchmark::DoNotOptimize(FormatMllog(record));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Write);

}  // namespace
}  // namespace assay::rules
