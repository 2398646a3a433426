// The whole coordinator and its agents in one thread, under simulated time: the real loop with its
// queue, batches, parked calls and effects, the real core and store, the real decisions of the
// agent; a network, disk, judges, people, trainers and losses of power drawn from a seed.
//
// After every event: what a reader of the log may rely on (history.h). At every answer: what it
// says is committed (answers.h). After every turn: no call waits whose worker should do something
// else, nobody is let in by what was revoked, memory is not ahead of the disk (sim_server.h). After
// every restart: the rows equal the fold of the log. At the end: every acknowledged submission is
// there once and has ended, every acknowledged event is there once and byte by byte, no id was
// given out twice, no trainer was started twice.
//
// ASSAY_SIM_SEED replays one seed, ASSAY_SIM_COUNT sets how many are run.

#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "server/store/reader.h"
#include "tests/sim/history.h"
#include "tests/sim/network.h"
#include "tests/sim/sim_people.h"
#include "tests/sim/sim_server.h"
#include "tests/sim/sim_worker.h"
#include "tests/support/temp_dir.h"

namespace assay::sim {
namespace {

constexpr int kWorkerCount = 4;
constexpr int64_t kTroubleUs = 60 * kMinute;        // at most, until everything works
constexpr int64_t kPatienceUs = 24 * 60 * kMinute;  // from then on
constexpr uint64_t kCoverageSeeds = 200;            // so many meet everything

class Simulation {
 public:
  Simulation(uint64_t seed, Coverage* coverage)
      : network_(seed),
        server_(&network_, coverage, path_),
        submitters_(&network_, &server_, kWorkerCount),
        operators_(&network_, &server_, &workers_, &submitters_) {
    for (int i = 0; i < kWorkerCount; ++i)
      workers_.push_back(std::make_unique<SimWorker>(&network_, &server_, absl::StrCat("w", i)));
  }

  void Run() {
    const int64_t heal_us = network_.now_us() + kSecond * network_.Below(kTroubleUs / kSecond);
    while (network_.now_us() < heal_us && !::testing::Test::HasFailure())
      network_.Step();
    network_.Heal();
    if (server_.is_score_missing()) server_.Restart();
    const int64_t deadline_us = network_.now_us() + kPatienceUs;
    while (!IsOver() && network_.now_us() < deadline_us && !::testing::Test::HasFailure())
      network_.Step();
    EXPECT_TRUE(IsOver()) << "a submission never ends";
    // Late evidence may still be on its way.
    const int64_t end_us = network_.now_us() + 40 * kMinute;
    while (network_.now_us() < end_us || !server_.is_up())
      network_.Step();
    server_.CheckRows();
    CheckHistory();
    CheckEvidence();
  }

 private:
  bool IsOver() const {
    if (!submitters_.is_answered()) return false;
    for (const auto& [id, submission] : server_.history().state().submissions)
      if (!IsTerminal(submission.state)) return false;
    return true;
  }

  // What ended long ago and has left memory is on the disk as it was.
  void CheckHistory() {
    const auto reader = *store::Reader::Open(path_);
    const core::State& state = server_.history().state();
    for (const core::SubmissionId id : submitters_.ids())
      EXPECT_EQ(state.submissions.count(id), 1u) << id << " was acknowledged";
    const core::SubmissionFilter all{.viewer = {.sees_all = true}};
    EXPECT_EQ(reader->ListSubmissions(all, {.size = 100})->items.size(), state.submissions.size());
    for (const auto& [id, submission] : state.submissions)
      EXPECT_TRUE(*reader->GetSubmission(id) == submission) << id;
    for (const auto& [id, run] : state.runs)
      EXPECT_TRUE(*reader->GetRun(id) == run) << id;
  }

  void CheckEvidence() {
    const auto reader = *store::Reader::Open(path_);
    for (const auto& worker : workers_) {
      for (const auto& [key, run] : worker->history()) {
        const auto events =
            *reader->RunEventsAfter(*core::ParseRunId(key.run), run.node_rank, 0, 1000);
        const auto acknowledged = worker->acknowledged().find(key);
        const bool is_known = acknowledged != worker->acknowledged().end();
        EXPECT_GE(static_cast<int64_t>(events.size()), is_known ? acknowledged->second : 0)
            << key.run;
        ASSERT_LE(events.size(), run.lines.size()) << key.run;
        for (size_t i = 0; i < events.size(); ++i) {
          EXPECT_EQ(events[i].seq, static_cast<int64_t>(i) + 1);
          EXPECT_EQ(events[i].text, run.lines[i]);
        }
      }
    }
  }

  testing::TempDir dir_;
  const std::string path_ = dir_.Path("assay.db");
  Network network_;
  SimServer server_;
  std::vector<std::unique_ptr<SimWorker>> workers_;
  SimSubmitters submitters_;
  SimOperators operators_;
};

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  uint64_t value = otherwise;
  if (text != nullptr && !absl::SimpleAtoi(text, &value)) ADD_FAILURE() << name << " is no number";
  return value;
}

// The workers here come by themselves, and no story lasts a month. Leases that a launcher grants
// are simulated in allocation_sim_test.cc; what is forgotten is tested in core_forget_test.cc.
const std::set<size_t>& CommandsElsewhere() {
  static const auto* const kinds =
      new std::set<size_t>{core::CommandBody(core::RequestAllocation{}).index(),
                           core::CommandBody(core::ReleaseAllocation{}).index(),
                           core::CommandBody(core::JoinAllocation{}).index(),
                           core::CommandBody(core::EnrolNode{}).index(),
                           core::CommandBody(core::LaunchReported{}).index()};
  return *kinds;
}
const std::set<size_t>& EventsElsewhere() {
  static const auto* const kinds = new std::set<size_t>{
      core::Event(core::AllocationSubmitted{}).index(),
      core::Event(core::NodeEnrolled{}).index(),
      core::Event(core::AllocationGranted{}).index(),
      core::Event(core::AllocationLaunchFailed{}).index(),
      core::Event(core::AllocationActivated{}).index(),
      core::Event(core::AllocationReleasing{}).index(),
      core::Event(core::AllocationEnded{}).index(),
      core::Event(core::WorkerForgotten{}).index(),
      core::Event(core::TokensForgotten{}).index(),
      core::Event(core::RequestsForgotten{}).index(),
      core::Event(core::DataLossAccepted{}).index()};  // an operator says so at the start
  return *kinds;
}

// A simulation that never meets a thing says nothing of it.
void CheckCoverage(const Coverage& coverage) {
  for (const auto& [what, count] : coverage.met)
    std::cout << count << " x " << what << "\n";
  for (const char* what : {"batch of several",
                           "checkpoint beside the commits",
                           "checkpoint that commits wait for",
                           "command turned away: RESOURCE_EXHAUSTED",
                           "command turned away: UNAVAILABLE",
                           "commit refused by a full disk",
                           "commit that found no page",
                           "commit refused by a row's size",
                           "commit refused by the schema",
                           "entry that cannot be scored",
                           "log that cannot be judged",
                           "a run on a node that has its dataset",
                           "power loss before a commit",
                           "power loss after a commit",
                           "power loss between answers",
                           "power loss after the answers",
                           "score that is too large for a row",
                           "verdict on a log that is too large for a row",
                           "shutdown",
                           "throughput set that is scored",
                           "wall clock that was set"})
    EXPECT_TRUE(coverage.met.contains(what)) << what << " is never met";
  for (size_t kind = 0; kind < std::variant_size_v<core::CommandBody>; ++kind)
    EXPECT_TRUE(coverage.answered.contains(kind) || CommandsElsewhere().contains(kind))
        << "no command of kind " << kind << " succeeds";
  for (size_t kind = 0; kind < std::variant_size_v<core::Event>; ++kind)
    EXPECT_TRUE(coverage.events.contains(kind) || EventsElsewhere().contains(kind))
        << "event of kind " << kind;
}

TEST(SimTest, EveryStoryEndsTheSame) {
  // In memory where there is one: what is tested is the order of writes, not the disk.
  setenv("TMPDIR", "/dev/shm", /*overwrite=*/0);
  SetMinLogSeverity(LogSeverity::FATAL);
  const uint64_t only = FromEnvironment("ASSAY_SIM_SEED", 0);
  const uint64_t count = FromEnvironment("ASSAY_SIM_COUNT", 1000);
  Coverage coverage;
  for (uint64_t seed = only == 0 ? 1 : only; seed <= (only == 0 ? count : only); ++seed) {
    SCOPED_TRACE(absl::StrCat("ASSAY_SIM_SEED=", seed));
    Simulation(seed, &coverage).Run();
    if (HasFailure()) break;
  }
  if (only == 0 && count >= kCoverageSeeds && !HasFailure()) CheckCoverage(coverage);
}

}  // namespace
}  // namespace assay::sim
