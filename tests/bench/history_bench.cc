// Questions to a history of many runs: how long a page, a count and groups take.
//
//   history_bench [DIRECTORY] [RUNS]     (100000 runs, in entries of 40)
//
// Makes the store with the core's own commands if DIRECTORY has none. Prints a line per question:
// the median and the longest of several times, in milliseconds, and how many rows matched.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "server/core/apply.h"
#include "server/core/core.h"
#include "server/core/history.h"
#include "server/store/history_reader.h"
#include "server/store/store.h"

namespace assay {
namespace {

constexpr int kRunsOfEntry = 40;
constexpr int kRepetitions = 7;
constexpr int64_t kNowUs = 1'700'000'000'000'000;

core::ImportSubmission SomeImport(std::mt19937* random, int64_t i) {
  const auto below = [random](uint32_t end) { return static_cast<uint32_t>((*random)() % end); };
  core::ImportSubmission import;
  import.source_path = absl::StrCat("results/", i);
  import.spec.organization = absl::StrCat("organization-", below(25));
  import.spec.system = absl::StrCat("system-", below(60));
  import.spec.benchmark = std::vector<std::string>{"cosmoflow", "deepcam", "openfold"}[below(3)];
  import.spec.division = below(4) == 0 ? "open" : "closed";
  import.spec.round = absl::StrCat("hpc-", below(4), ".0.0");
  import.spec.node_count = static_cast<int32_t>(1U << below(8));
  import.spec.hyperparameters = {{"global_batch_size", absl::StrCat(256U << below(6))},
                                 {"opt_name", below(2) ? "\"sgd\"" : "\"lamb\""},
                                 { "opt_base_learning_rate",
                                   absl::StrCat("1e-", 1 + below(4)) }};
  import.score_minutes = 5 + below(4000) / 10.0;
  for (int k = 0; k < kRunsOfEntry; ++k) {
    core::RunFacts facts;
    facts.is_compliant = true;
    facts.is_converged = below(10) != 0;
    facts.run_start_ms = 1'500'000'000'000 + int64_t{below(2'000'000'000)} * 90;
    facts.run_stop_ms = *facts.run_start_ms + 60'000 + below(20'000'000);
    facts.quality = 0.12 + below(1000) * 1e-6;
    facts.epoch_count = 15 + below(80);
    facts.global_batch_size = 256;
    facts.findings.push_back({.rule_id = below(50) == 0 ? "R-HP-004" : "R-TOUCH-001",
                              .severity = rules::Severity::kWarning});
    const std::string file = absl::StrCat("result_", k, ".txt");
    core::ImportSubmission::ImportedRun& run = import.runs.emplace_back();
    run.log.file_name = run.file_name = file;
    run.log.sha256 = std::string(64, 'b');
    run.log.size_bytes = 9;
    run.facts = std::move(facts);
  }
  return import;
}

void MakeStore(const std::string& path, int64_t run_count) {
  const auto store = *store::Store::Open(path);
  core::Policy policy;
  policy.secret = "secret";
  core::Core core(std::move(policy), core::State{}, kNowUs);
  std::mt19937 random(1);
  const absl::Time start = absl::Now();
  for (int64_t i = 0; i < run_count / kRunsOfEntry; ++i) {
    std::vector<core::Command> commands;
    commands.push_back({.principal = "bench", .body = SomeImport(&random, i)});
    const core::Outcome outcome = core.Handle(std::move(commands), kNowUs + i);
    CHECK_OK(store->Commit(outcome, core.state()));
    core.DropRedundant();
  }
  std::printf("made %ld runs in %s\n", static_cast<long>(run_count),
              absl::FormatDuration(absl::Now() - start).c_str());
}

struct Asked {
  const char* name;
  core::HistoryQuestion question;
};

std::vector<Asked> Questions() {
  const HistoryKind run = HistoryKind::kRun;
  return {{"newest runs", {.kind = run}},
          {"benchmark and round", {.kind = run, .filter = "benchmark=cosmoflow round=hpc-2.0.0"}},
          {"AND of OR",
           {.kind = run,
            .filter = "benchmark=cosmoflow (round=hpc-2.0.0 OR round=hpc-3.0.0) minutes<30"}},
          {"NOT and wildcard", {.kind = run, .filter = "-system=system-1* converged=true"}},
          {"fastest", {.kind = run, .filter = "converged=true", .order_by = "minutes"}},
          {"largest quality last", {.kind = run, .order_by = "quality desc, time"}},
          {"hyperparameter",
           {.kind = run,
            .filter = "hyperparameters.global_batch_size>1024 hyperparameters.opt_name=lamb"}},
          {"finding", {.kind = run, .filter = "findings:R-HP-004"}},
          {"time", {.kind = run, .filter = "time>=2019-01-01 time<2019-03-01"}},
          {"one entry", {.kind = run, .filter = "entry=e-77"}},
          {"entries by score", {.filter = "benchmark=deepcam state=valid", .order_by = "minutes"}},
          {"findings of a rule", {.kind = HistoryKind::kFinding, .filter = "rule=R-HP-004"}},
          {"group, count and mean",
           {.kind = run,
            .group_by = {"benchmark", "round"},
            .aggregates = {"count", "mean(minutes)", "min(minutes)"}}},
          {"group, percentiles",
           {.kind = run,
            .filter = "converged=true",
            .group_by = {"system"},
            .aggregates = {"p50(minutes)", "p95(minutes)"}}}};
}

double Milliseconds(absl::Duration duration) {
  return absl::ToDoubleMilliseconds(duration);
}

void Time(store::HistoryReader* reader, Asked asked) {
  asked.question.viewer = {
      .sees_all = true, .organization = "", .sees_published = true, .now_us = kNowUs};
  std::vector<double> first;
  std::vector<double> next;
  int64_t total_count = 0;
  for (int i = 0; i < kRepetitions; ++i) {
    absl::Time start = absl::Now();
    const auto answer = reader->Ask(asked.question);
    first.push_back(Milliseconds(absl::Now() - start));
    CHECK_OK(answer.status());
    total_count = answer->total_count;
    if (answer->next_page_token.empty()) continue;
    core::HistoryQuestion page = asked.question;
    page.page_token = answer->next_page_token;
    start = absl::Now();
    CHECK_OK(reader->Ask(page).status());
    next.push_back(Milliseconds(absl::Now() - start));
  }
  std::sort(first.begin(), first.end());
  std::sort(next.begin(), next.end());
  std::printf("%-24s %8ld rows  first page %6.1f ms (%6.1f)", asked.name,
              static_cast<long>(total_count), first[first.size() / 2], first.back());
  if (!next.empty()) std::printf("  next %6.1f ms (%6.1f)", next[next.size() / 2], next.back());
  std::printf("\n");
}

void PrintLoad() {
  double load[1] = {};
  if (getloadavg(load, 1) == 1) std::printf("load average %.1f\n", load[0]);
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  const std::string directory = argc > 1 ? argv[1] : "/tmp/history_bench";
  const int64_t run_count = argc > 2 ? std::atoll(argv[2]) : 100'000;
  CHECK_OK(assay::MakeDirectories(directory));
  const std::string path = directory + "/assay.db";
  if (!assay::FileExists(path)) assay::MakeStore(path, run_count);
  const assay::RealClock clock;
  const auto reader = *assay::store::HistoryReader::Open(path, &clock);
  assay::PrintLoad();
  for (const assay::Asked& asked : assay::Questions())
    assay::Time(reader.get(), asked);
  assay::PrintLoad();
  return 0;
}
