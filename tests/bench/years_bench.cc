// A coordinator after years of work: how long it takes to start, and what people wait for.
//
//   years_bench [DIRECTORY] [RUNS] [LINES]     (/tmp/years_bench, 100000 runs, 1000 lines of each)
//
// Makes the store with the core's own commands if DIRECTORY has none: entries of 40 runs, 40 of
// them at a time on 40 nodes, each run placed, executed, judged and scored, with the lines of its
// log as events. Then starts assayd on it and runs `assay` as people do. Prints a table in
// Markdown: median and longest, in milliseconds. Files of runs are named and not there.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"

#include "common/file.h"
#include "common/log.h"
#include "common/process.h"
#include "common/sha256.h"
#include "server/core/core.h"
#include "server/store/store.h"
#include "tests/integration/deployment.h"
#include "tests/server/core/world.h"

namespace assay::testing {
namespace {

constexpr int kRunsOfEntry = 40;
constexpr int kNodes = 40;
constexpr int kRepetitions = 7;

// Entries one after the other, many commands a commit.
class Years {
 public:
  Years(store::Store* store, int64_t lines_per_run)
      : store_(*store), lines_per_run_(lines_per_run), core_(Policy(), {}, now_us_) {
    for (const char* benchmark : {"cosmoflow", "deepcam"}) {
      core::Dataset dataset = core::testing::SomeDataset();
      dataset.id = dataset.benchmark = benchmark;
      Do({{"root", core::AddDataset{dataset}}});
    }
    Do(FromNodes([](core::Synchronize*) {}));
  }

  // As many entries as there are nodes, side by side; the runs of each one after the other.
  void AddEntries() {
    const int64_t first = core_.state().last_submission + 1;
    std::vector<core::Command> commands;
    for (int i = 0; i < kNodes; ++i)
      commands.push_back(
          {"alice", core::testing::Creation(SomeSpec(), absl::StrCat("request-", first + i))});
    Do(std::move(commands));
    for (std::vector<core::Run> runs = Placed(); !runs.empty(); runs = Placed())
      Execute(runs);
    commands.clear();
    for (int i = 0; i < kNodes; ++i)
      commands.push_back({std::string(core::kCoordinator),
                          core::SetScored{.submission = core::SubmissionId{first + i},
                                          .score_minutes = 5 + Below(400) / 10.0}});
    Do(std::move(commands));
  }

  int64_t line_count() const { return line_count_; }
  int64_t last_seq() const { return core_.state().last_seq; }

 private:
  static core::Policy Policy() {
    core::Policy policy;
    policy.secret = "secret";
    return policy;
  }
  uint32_t Below(uint32_t end) { return static_cast<uint32_t>(random_() % end); }

  void Do(std::vector<core::Command> commands) {
    now_us_ += 1000;
    const core::Outcome outcome = core_.Handle(std::move(commands), now_us_);
    for (const absl::StatusOr<core::Reply>& reply : outcome.replies)
      CHECK_OK(reply.status());
    CHECK_OK(store_.Commit(outcome, core_.state()));
    core_.DropRedundant();
  }

  template <typename Fill>
  std::vector<core::Command> FromNodes(Fill fill) {
    std::vector<core::Command> commands;
    for (int i = 0; i < kNodes; ++i) {
      core::Synchronize call{.worker = absl::StrCat("w", i)};
      call.description.incarnation = "i1";
      call.description.capabilities.rendezvous_address = absl::StrCat("w", i, ":7000");
      call.description.capabilities.backends = {"onednn"};
      fill(&call);
      commands.push_back({call.worker, std::move(call)});
    }
    return commands;
  }

  std::vector<core::Run> Placed() const {
    std::vector<core::Run> runs;
    for (const core::RunId id : core_.state().active)
      runs.push_back(core_.state().runs.at(id));
    return runs;
  }

  void Execute(const std::vector<core::Run>& runs) {
    Do(Reported(runs, core::WorkerPhase::kExecuting));
    std::vector<core::Command> lines;
    std::vector<core::Command> judged;
    for (const core::Run& run : runs) {
      const std::string& worker = run.nodes[0].worker;
      lines.push_back({worker, core::AppendRunEvents{run.id, 1, 0, Lines(run.id), worker}});
      const core::ArtifactRef log = {.file_name = core::ResultFileName(run),
                                     .sha256 = Sha256Hex(run.id.ToString()),
                                     .size_bytes = 100 * lines_per_run_};
      lines.push_back({worker, core::RecordArtifact{run.id, 1, log, worker}});
      judged.push_back(
          {std::string(core::kCoordinator), core::LogChecked{run.id, SomeFacts(), ""}});
    }
    Do(std::move(lines));
    Do(Reported(runs, core::WorkerPhase::kFinished));
    Do(std::move(judged));
    Do(FromNodes([](core::Synchronize*) {}));
    line_count_ += lines_per_run_ * std::ssize(runs);
  }

  std::vector<core::Command> Reported(const std::vector<core::Run>& runs, core::WorkerPhase phase) {
    return FromNodes([&](core::Synchronize* call) {
      for (const core::Run& run : runs)
        if (run.nodes[0].worker == call->worker) call->report = {phase, run.id, 1, 0, "", {}};
    });
  }

  core::SubmissionSpec SomeSpec() {
    core::SubmissionSpec spec = core::testing::SomeSpec();
    spec.organization = absl::StrCat("organization-", Below(25));
    spec.system = absl::StrCat("system-", Below(60));
    spec.benchmark = spec.dataset = Below(2) == 0 ? "cosmoflow" : "deepcam";
    spec.division = Below(4) == 0 ? "open" : "closed";
    spec.run_count = kRunsOfEntry;
    return spec;
  }

  core::RunFacts SomeFacts() {
    core::RunFacts facts;
    facts.is_compliant = true;
    facts.is_converged = Below(10) != 0;
    facts.run_start_ms = now_us_ / 1000;
    facts.run_stop_ms = *facts.run_start_ms + 60'000 + Below(20'000'000);
    facts.quality = 0.12 + Below(1000) * 1e-6;
    facts.epoch_count = 15 + Below(80);
    facts.global_batch_size = 256;
    return facts;
  }

  std::vector<core::RunEvent> Lines(core::RunId run) {
    std::vector<core::RunEvent> lines;
    for (int64_t k = 1; k <= lines_per_run_; ++k) {
      lines.push_back({.seq = k,
                       .text = absl::StrCat(":::MLLOG {\"time_ms\": ", now_us_ / 1000 + k,
                                            ", \"key\": \"eval_error\", \"value\": 0.", Below(9999),
                                            ", \"metadata\": {\"epoch_num\": ", k, "}}"),
                       .wall_us = now_us_ + k,
                       .mono_ns = k * 1000 + run.number,
                       .line = k});
    }
    return lines;
  }

  store::Store& store_;
  const int64_t lines_per_run_;
  int64_t now_us_ = core::testing::kStart;
  int64_t line_count_ = 0;
  std::mt19937 random_{1};
  core::Core core_;
};

void MakeStore(const std::string& directory, int64_t run_count, int64_t lines_per_run) {
  CHECK_OK(MakeDirectories(directory, kPrivateDirectory));
  const auto store = *store::Store::Open(JoinPath(directory, "assay.db"));
  const absl::Time start = absl::Now();
  Years years(store.get(), lines_per_run);
  for (int64_t made = 0; made < run_count; made += kNodes * kRunsOfEntry) {
    years.AddEntries();
    CHECK_OK(store->Checkpoint());
    std::fprintf(stderr, "%ld lines\n", static_cast<long>(years.line_count()));
  }
  CHECK_OK(store->Checkpoint());
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  std::printf(
      "Made %ld runs with %ld lines of logs, and %ld events of the coordinator, in %.0f s.\n",
      static_cast<long>(run_count), static_cast<long>(years.line_count()),
      static_cast<long>(years.last_seq()), seconds);
}

void PrintRow(const std::string& name, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  std::printf("| %s | %.0f | %.0f |\n", name.c_str(), times[times.size() / 2], times.back());
  std::fflush(stdout);
}

double Milliseconds(absl::Duration duration) {
  return absl::ToDoubleMilliseconds(duration);
}

// Until it serves, each time after a kill.
void TimeStart(Deployment* deployment) {
  std::vector<double> times;
  for (int i = 0; i < kRepetitions; ++i) {
    if (i > 0) deployment->Kill();
    const auto took = deployment->Start("retention { keep_uncompressed: true }");
    CHECK_OK(took.status());
    times.push_back(Milliseconds(*took));
  }
  PrintRow("start of `assayd` after `kill -9`, until it serves", std::move(times));
}

void TimeAssay(const Deployment& deployment, const std::vector<std::string>& arguments) {
  const char* const folder = std::getenv("ASSAY_BIN_DIR");
  std::vector<double> times;
  for (int i = 0; i < kRepetitions; ++i) {
    SpawnOptions options = {
        .argv = {JoinPath(folder == nullptr ? "build/dev/bin" : folder, "assay")},
        .environment = {absl::StrCat("ASSAY_SOCKET=", deployment.dir().Path("assayd.sock"))},
        .output_path = deployment.dir().Path("out")};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    const absl::Time start = absl::Now();
    const absl::StatusOr<ProcessId> process = Spawn(options);
    CHECK_OK(process.status());
    const absl::StatusOr<int> code = WaitForExit(*process, absl::Minutes(5));
    times.push_back(Milliseconds(absl::Now() - start));
    CHECK_OK(code.status());
    if (*code != 0) LOG(ERROR) << *ReadFile(options.output_path);
  }
  PrintRow(absl::StrCat("`assay ", absl::StrJoin(arguments, " "), "`"), std::move(times));
}

void PrintLoad() {
  double load[1] = {};
  if (getloadavg(load, 1) == 1) std::printf("\nload average %.1f\n", load[0]);
}

}  // namespace
}  // namespace assay::testing

int main(int argc, char** argv) {
  using namespace assay::testing;  // NOLINT
  const std::string directory = argc > 1 ? argv[1] : "/tmp/years_bench";
  const int64_t run_count = argc > 2 ? std::atoll(argv[2]) : 100'000;
  const int64_t lines_per_run = argc > 3 ? std::atoll(argv[3]) : 1000;
  if (!assay::FileExists(directory)) MakeStore(directory, run_count, lines_per_run);
  Deployment deployment;
  std::filesystem::create_directory_symlink(directory, deployment.dir().Path("data"));
  PrintLoad();
  std::printf("\n| | median, ms | longest, ms |\n|---|---|---|\n");
  TimeStart(&deployment);
  TimeAssay(deployment, {"--help"});
  TimeAssay(deployment, {"entry", "list", "--limit", "50"});
  TimeAssay(deployment, {"entry", "list", "--benchmark", "cosmoflow", "--limit", "50"});
  TimeAssay(deployment, {"entry", "list"});
  TimeAssay(deployment, {"entry", "show", "e-2000"});
  TimeAssay(deployment, {"run", "list", "--limit", "50"});
  TimeAssay(deployment, {"compare", "e-10", "e-2000"});
  TimeAssay(deployment, {"logs", "r-70000"});
  PrintLoad();
  return 0;
}
