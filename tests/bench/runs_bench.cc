// How many trivial runs of an external program a coordinator brings from submission to verdict in a
// second, and whether a long history slows it. Nodes are simulated down to their connections: each
// takes a run, sends its log as events and as a file, and says that it has ended; certificates,
// TLS, commits, judging and scoring are real.
//
// Usage: runs_bench [nodes, default 32] [seconds a measurement, default 20]
//                   [finished runs before the second measurement, default 20000]
// Prints a table in Markdown.

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "common/log.h"
#include "common/secret.h"
#include "tests/integration/deployment.h"
#include "tests/integration/fake_worker.h"

namespace assay::testing {
namespace {

using Submissions = v1::SubmissionService::Stub;

constexpr int kRunsPerEntry = 20;
constexpr int kSubmitters = 2;

struct Tally {
  std::atomic<int64_t> started = 0;  // runs of entries that were submitted
  std::atomic<int64_t> ended = 0;
  std::atomic<bool> is_over = false;
};

v1::SubmissionSpec TrivialEntry() {
  v1::SubmissionSpec spec = TinySpec("Org", 1);
  spec.set_division("open");
  spec.set_run_count(kRunsPerEntry);
  spec.mutable_command()->add_command("/bin/true");
  spec.mutable_command()->set_launcher("per-rank");
  return spec;
}

// Keeps as many runs waiting as there are nodes, twice.
void Submit(const Deployment& deployment, int nodes, Tally* tally) {
  Client client(deployment.Unix());
  while (!tally->is_over) {
    if (tally->started - tally->ended > int64_t{2} * nodes) {
      absl::SleepFor(absl::Milliseconds(2));
      continue;
    }
    v1::CreateSubmissionRequest request;
    request.set_request_id(MakeUuid());
    *request.mutable_spec() = TrivialEntry();
    tally->started += kRunsPerEntry;
    CHECK_OK(client.Call(client.submission(), &Submissions::CreateSubmission, request).status());
  }
}

void Work(const Deployment& deployment, int number, Tally* tally) {
  const std::string name = absl::StrCat("n", number);
  FakeWorker worker(deployment.Worker(name), name);
  const std::vector<std::string> lines = TinyLog();
  while (!tally->is_over) {
    const absl::Status status = worker.WalkOneRun(lines);
    if (tally->is_over) return;
    CHECK_OK(status);
    ++tally->ended;
  }
}

double ProcessorSeconds(pid_t pid) {
  std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
  std::string word;
  double ticks = 0;
  for (int field = 1; stat >> word; ++field)
    if (field == 14 || field == 15) ticks += std::strtod(word.c_str(), nullptr);
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

void Measure(const Deployment& deployment, double seconds, const Tally& tally) {
  double load = 0;
  getloadavg(&load, 1);
  const int64_t finished = tally.ended;
  const double processor_s = ProcessorSeconds(deployment.pid());
  const absl::Time start = absl::Now();
  absl::SleepFor(absl::Seconds(seconds));
  const double elapsed_s = absl::ToDoubleSeconds(absl::Now() - start);
  const auto runs = static_cast<double>(tally.ended - finished);
  std::printf("| %lld | %.0f | %.1f ms | %.1f |\n", static_cast<long long>(finished),
              runs / elapsed_s, 1000 * (ProcessorSeconds(deployment.pid()) - processor_s) / runs,
              load);
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  int nodes = 32, seconds = 20, finished = 20'000;
  int* const arguments[] = {&nodes, &seconds, &finished};
  for (int i = 1; i < argc && i <= 3; ++i)
    CHECK(absl::SimpleAtoi(argv[i], arguments[i - 1])) << argv[i];
  Deployment deployment;
  CHECK_OK(deployment.Start().status());
  Client root(deployment.Unix());
  AddTinyDataset(&root);
  Tally tally;
  std::vector<std::thread> threads;
  for (int i = 0; i < kSubmitters; ++i)
    threads.emplace_back([&] { Submit(deployment, nodes, &tally); });
  for (int i = 0; i < nodes; ++i)
    threads.emplace_back([&, i] { Work(deployment, i, &tally); });
  while (tally.ended < 10 * nodes)
    absl::SleepFor(absl::Milliseconds(10));
  std::printf(
      "%d nodes, entries of %d runs\n\n| finished before | runs/s | assayd, for a run | load |\n"
      "|---|---|---|---|\n",
      nodes, kRunsPerEntry);
  Measure(deployment, seconds, tally);
  while (tally.ended < finished)
    absl::SleepFor(absl::Milliseconds(100));
  Measure(deployment, seconds, tally);
  tally.is_over = true;
  for (std::thread& thread : threads)
    thread.join();
  return 0;
}

}  // namespace
}  // namespace assay::testing

int main(int argc, char** argv) {
  return assay::testing::Main(argc, argv);
}
