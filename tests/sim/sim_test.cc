// The whole coordinator and its agents in one thread, under simulated time: the real core, the real
// store, the real decisions of the agent; a network, trainers and crashes drawn from a seed.
//
// After every command: no worker serves two gangs, no gang is partial. After every restart: the
// rows equal the fold of the log. At the end: every acknowledged submission is there once and has
// ended, every acknowledged event is there once and byte by byte, no id was given out twice, no
// trainer was started twice. ASSAY_SIM_SEED replays one seed, ASSAY_SIM_COUNT sets how many are
// run.

#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "server/store/reader.h"
#include "tests/server/core/world.h"
#include "tests/sim/network.h"
#include "tests/sim/sim_server.h"
#include "tests/sim/sim_worker.h"
#include "tests/support/temp_dir.h"

namespace assay::sim {
namespace {

constexpr int kWorkerCount = 4;
constexpr int kSubmissionCount = 5;
constexpr int64_t kPatienceUs = 24 * 60 * kMinute;

class Simulation {
 public:
  explicit Simulation(uint64_t seed) : network_(seed), server_(&network_, path_) {
    Submit("dataset", core::AddDataset{core::testing::SomeDataset()});
    for (int i = 0; i < kWorkerCount; ++i)
      workers_.push_back(std::make_unique<SimWorker>(&network_, &server_, absl::StrCat("w", i)));
    for (int i = 0; i < kSubmissionCount; ++i) {
      core::SubmissionSpec spec = core::testing::SomeSpec();
      spec.node_count = 1 + static_cast<int32_t>(network_.Below(kWorkerCount));
      spec.run_count = 1 + static_cast<int32_t>(network_.Below(2));
      spec.replacement_count_max = static_cast<int32_t>(network_.Below(4));
      const std::string request_id = absl::StrCat("request-", i);
      network_.After(kSecond * (10 + network_.Below(120)), [this, spec, request_id] {
        Submit(request_id, core::testing::Creation(spec, request_id));
      });
    }
  }

  void Run() {
    const int64_t deadline_us = network_.now_us() + kPatienceUs;
    // Looking costs more than a step.
    while (!IsOver() && network_.now_us() < deadline_us && !::testing::Test::HasFailure())
      for (int step = 0; step < 50; ++step)
        network_.Step();
    EXPECT_TRUE(IsOver()) << "a submission never ends";
    // Late evidence may still be on its way.
    const int64_t end_us = network_.now_us() + 40 * kMinute;
    while (network_.now_us() < end_us || !server_.is_up())
      network_.Step();
    server_.CheckRowsEqualFold();
    CheckEvidence();
  }

 private:
  // A client that repeats its request until it is answered.
  void Submit(const std::string& name, const core::CommandBody& body) {
    if (answered_.count(name) > 0) return;
    network_.Send([this, name, body] {
      server_.Receive({"alice", body}, [this, name](const absl::StatusOr<core::Reply>& reply) {
        network_.Send([this, name, reply] { Answered(name, reply); });
      });
    });
    network_.After(5 * kSecond, [this, name, body] { Submit(name, body); });
  }

  void Answered(const std::string& name, const absl::StatusOr<core::Reply>& reply) {
    if (!reply.ok()) return;  // the dataset is not there yet
    const auto* made = std::get_if<core::SubmissionReply>(&*reply);
    const int64_t number = made == nullptr ? 0 : made->id.number;
    const auto [it, is_first] = answered_.emplace(name, number);
    EXPECT_EQ(it->second, number) << name << " was made twice";
    if (!is_first || number == 0) return;
    EXPECT_TRUE(ids_.insert(number).second) << "e-" << number << " was given out twice";
  }

  bool IsOver() {
    if (answered_.size() < kSubmissionCount + 1) return false;
    const auto reader = *store::Reader::Open(path_);
    for (const int64_t id : ids_)
      if (!IsTerminal(reader->GetSubmission(core::SubmissionId{id})->state)) return false;
    return true;
  }

  void CheckEvidence() {
    const auto reader = *store::Reader::Open(path_);
    EXPECT_EQ(reader->ListSubmissions({}, {.size = 100})->items.size(), ids_.size());
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
  std::map<std::string, int64_t> answered_;  // request -> number of the submission
  std::set<int64_t> ids_;
};

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  uint64_t value = otherwise;
  if (text != nullptr && !absl::SimpleAtoi(text, &value)) ADD_FAILURE() << name << " is no number";
  return value;
}

TEST(SimTest, EveryStoryEndsTheSame) {
  // In memory where there is one: what is tested is the order of writes, not the disk.
  setenv("TMPDIR", "/dev/shm", /*overwrite=*/0);
  SetMinLogSeverity(LogSeverity::ERROR);
  const uint64_t only = FromEnvironment("ASSAY_SIM_SEED", 0);
  const uint64_t count = FromEnvironment("ASSAY_SIM_COUNT", 200);
  for (uint64_t seed = only == 0 ? 1 : only; seed <= (only == 0 ? count : only); ++seed) {
    SCOPED_TRACE(absl::StrCat("ASSAY_SIM_SEED=", seed));
    Simulation(seed).Run();
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace assay::sim
