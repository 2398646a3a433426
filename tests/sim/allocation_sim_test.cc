// Leases of nodes in simulated time: the real core on the real store, crashed before and after
// commits; a launcher that grants late, twice, other nodes or none, and that loses them; agents
// that come and go, also after their lease. ASSAY_SIM_SEED replays one seed, ASSAY_SIM_COUNT sets
// how many are run.

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "common/random.h"
#include "server/store/store.h"
#include "tests/server/core/world.h"
#include "tests/support/temp_dir.h"

namespace assay::sim {
namespace {

using namespace core;  // NOLINT(build/namespaces): names of a dozen commands

using core::testing::kSecond;
using core::testing::SomeSpec;
using Outcome = LaunchReported::Outcome;

// A launcher that grants, fails, loses and repeats at random, agents that come and go, and a core
// that is started anew from what a store would hold. After each step: each gang is of one
// allocation, no worker serves two runs, and a fold of the log is the state.
class Chaos {
 public:
  explicit Chaos(uint64_t seed) : random_(seed, Purpose::kTest) { Start(); }

  void Step() {
    switch (Below(12)) {
      case 0:
        return Submit();
      case 1:
        return Answer();
      case 2:
        return Report(Outcome::kEnded);
      case 3:
        return Report(Outcome::kGranted);
      case 4:
        return Handle("olga", ReleaseAllocation{Some(), "why not"});
      case 5:
        return Crash();
      case 6:
        now_us_ += static_cast<int64_t>(Below(400)) * kSecond;
        return Handle("coordinator", Tick{});
      case 7:
        return Report(Outcome::kPending);
      case 8:
        return Join();
      case 9:
        return Enrol();
      default:
        return Call();
    }
  }

  // Kinds of events that were committed.
  std::set<size_t> Kinds() const {
    std::set<size_t> kinds;
    for (const RecordedEvent& event : log_)
      kinds.insert(event.event.index());
    return kinds;
  }

  void Check() const {
    const State& state = core_->state();
    std::set<std::string> busy;
    for (const RunId id : state.active) {
      for (const RunNode& node : state.runs.at(id).nodes) {
        if (node.is_released || node.is_lost) continue;
        ASSERT_TRUE(busy.insert(node.worker).second) << node.worker << " serves two runs";
        ASSERT_EQ(state.workers.at(node.worker).run, id);
        ASSERT_EQ(state.workers.at(node.worker).allocation, state.runs.at(id).allocation);
      }
    }
    for (const auto& [name, worker] : state.workers) {
      const bool is_known =
          worker.allocation.is_none() || state.allocations.contains(worker.allocation);
      ASSERT_TRUE(is_known) << name;
      if (!worker.allocation.is_none() && absl::StartsWith(name, kSubmitterWorkerPrefix)) {
        ASSERT_EQ(state.allocations.at(worker.allocation).spec.launcher, kSubmitterLauncher);
      }
    }
    for (const auto& [id, allocation] : state.allocations) {
      const std::vector<std::string>& enrolled = allocation.enrolled_hosts;
      ASSERT_EQ(std::set<std::string>(enrolled.begin(), enrolled.end()).size(), enrolled.size())
          << "a node of " << id << " has enrolled twice";
    }
    State folded;
    for (const RecordedEvent& event : log_)
      Apply(event, &folded);
    DropAllRedundant(&folded);
    ASSERT_EQ(folded, state);
    const auto loaded = store_->Load();
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    ASSERT_EQ(*loaded, state) << "what a restart would find";
  }

 private:
  uint32_t Below(uint32_t bound) { return random_.Below(draw_++, bound); }
  AllocationId Some() { return AllocationId{1 + Below(1 + Recent())}; }
  uint32_t Recent() const { return static_cast<uint32_t>(core_->state().last_allocation); }

  void Handle(const std::string& principal, CommandBody body) {
    std::vector<Command> commands;
    commands.push_back({principal, std::move(body)});
    const core::Outcome outcome = core_->Handle(commands, now_us_);
    const uint32_t fate = Below(30);
    if (fate == 0) return core_->Reset(*store_->Load());  // the commit is refused
    if (fate == 1) return Crash();                        // before the commit
    CHECK_OK(store_->Commit(outcome, core_->state()));
    log_.insert(log_.end(), outcome.events.begin(), outcome.events.end());
    core_->DropRedundant();
    if (fate == 2) return Crash();  // after it, and before anybody was told
    wanted_.insert(wanted_.end(), outcome.effects.begin(), outcome.effects.end());
  }

  // What the launcher was asked and has not answered is lost with the coordinator.
  void Crash() {
    wanted_.clear();
    store_.reset();
    now_us_ += static_cast<int64_t>(Below(60)) * kSecond;
    Start();
  }

  void Start() {
    store_ = *store::Store::Open(dir_.Path("assay.db"));
    core_ = std::make_unique<Core>(Policy{.secret = "s"}, *store_->Load(), now_us_);
    const bool is_wanted_at_once = Below(2) == 0;
    const bool is_per_submission = Below(2) == 0;
    Handle("root", AddDataset{core::testing::SomeDataset()});
    Handle("coordinator", LauncherStarted{.launcher = "local",
                                          .allocation_count_max = 2,
                                          .node_count_min = 1,
                                          .node_count_max = 3,
                                          .is_wanted_at_once = is_wanted_at_once,
                                          .is_per_submission = is_per_submission});
  }

  void Submit() {
    SubmissionSpec spec = SomeSpec();
    spec.node_count = 1 + static_cast<int32_t>(Below(3));
    spec.replacement_count_max = 1;
    Handle("alice", core::testing::Creation(spec, absl::StrCat("request-", ++request_count_)));
  }

  // The launcher does what it was asked, or cannot.
  void Answer() {
    if (wanted_.empty()) return;
    const Effect effect = wanted_.front();
    wanted_.erase(wanted_.begin());
    LaunchReported report{.reason = "cannot"};
    if (const auto* acquire = std::get_if<AcquireNodes>(&effect); acquire != nullptr) {
      report.allocation = acquire->allocation.id;
      if (Below(3) > 0) report = Granted(acquire->allocation.id);
    }
    if (const auto* release = std::get_if<ReleaseNodes>(&effect); release != nullptr) {
      report.allocation = release->allocation;
      if (Below(3) > 0) report.outcome = Outcome::kEnded;
    }
    Handle("coordinator", report);
  }

  LaunchReported Granted(AllocationId id) {
    LaunchReported report{.allocation = id, .outcome = Outcome::kGranted};
    for (uint32_t i = 0; i <= Below(3); ++i)
      report.workers.push_back(absl::StrCat("n", id.number % 3, "-", i));
    if (Below(2) == 0)
      for (size_t i = 0; i < report.workers.size(); ++i)
        report.hosts.push_back(absl::StrCat("h", i));
    if (Below(4) == 0) report.deadline_us = now_us_ + 300 * kSecond;
    return report;
  }

  void Report(LaunchReported::Outcome outcome) {
    LaunchReported report = Granted(Some());
    report.outcome = outcome;
    if (outcome == Outcome::kPending) report.job = absl::StrCat("job-", Below(5));
    Handle("coordinator", report);
  }

  // A submitter brings nodes of a job that may have joined already.
  void Join() {
    JoinAllocation join{
        .submission =
            SubmissionId{1 + Below(1 + static_cast<uint32_t>(core_->state().last_submission))},
        .job = absl::StrCat("job-", Below(5)),
        .token_expires_at_us = now_us_ + 600 * kSecond,
        .deadline_us = Below(4) == 0 ? now_us_ + 300 * kSecond : 0};
    for (uint32_t i = 0; i <= Below(3); ++i) {
      join.hosts.push_back(absl::StrCat("h", i));
      join.token_sha256s.push_back(std::string(64, static_cast<char>('a' + i)));
    }
    Handle("alice", join);
  }

  // A node of a job asks for its certificate; mostly such a one as there is.
  void Enrol() {
    EnrolNode enrol{.allocation = Some(), .job = absl::StrCat("job-", Below(5))};
    const uint32_t i = Below(3);
    enrol.node = absl::StrCat("h", i);
    enrol.worker = absl::StrCat("n", enrol.allocation.number % 3, "-", i);
    const auto it = core_->state().allocations.find(enrol.allocation);
    if (it != core_->state().allocations.end() && Below(4) > 0) enrol.job = it->second.job;
    Handle(enrol.worker, enrol);
  }

  std::string SomeWorker() {
    if (Below(3) == 0) return absl::StrCat("w", Below(2));
    if (Below(3) == 0) return absl::StrCat(kSubmitterWorkerPrefix, Some().number, "-", Below(3));
    return absl::StrCat("n", Below(3), "-", Below(3));
  }

  // A worker calls: idle, or executing or done with what it holds.
  void Call() {
    const std::string name = SomeWorker();
    Synchronize call{.worker = name, .description = {.incarnation = "i1"}};
    if (name[0] == 'n' && Below(2) == 0)
      call.description.labels = {{std::string(kAllocationLabel), Some().ToString()}};
    const auto it = core_->state().workers.find(name);
    if (it != core_->state().workers.end() && !it->second.run.is_none() && Below(4) > 0) {
      call.report = {.phase = Below(2) == 0 ? WorkerPhase::kExecuting : WorkerPhase::kFinished,
                     .run = it->second.run,
                     .generation = it->second.generation,
                     .exit_code = Below(2) == 0 ? 0 : 9};
    }
    call.is_leaving = Below(12) == 0;
    Handle(name, call);
  }

  const Stream random_;
  uint64_t draw_ = 0;
  int64_t now_us_ = core::testing::kStart;
  int request_count_ = 0;
  const assay::testing::TempDir dir_;
  std::unique_ptr<store::Store> store_;
  std::vector<RecordedEvent> log_;
  std::vector<Effect> wanted_;
  std::unique_ptr<Core> core_;
};

int64_t NumberOf(const char* variable, int64_t otherwise) {
  const char* const text = std::getenv(variable);
  int64_t number = 0;
  return text != nullptr && absl::SimpleAtoi(text, &number) ? number : otherwise;
}

TEST(AllocationSimTest, HoldsWhateverTheLauncherDoes) {
  const int64_t one = NumberOf("ASSAY_SIM_SEED", 0);
  const int64_t first = one == 0 ? 1 : one;
  const int64_t count = one == 0 ? NumberOf("ASSAY_SIM_COUNT", 20) : 1;
  std::set<size_t> met;
  for (int64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(absl::StrCat("ASSAY_SIM_SEED=", seed));
    Chaos chaos(static_cast<uint64_t>(seed));
    for (int step = 0; step < 200; ++step) {
      chaos.Step();
      ASSERT_NO_FATAL_FAILURE(chaos.Check()) << "step " << step;
    }
    met.merge(chaos.Kinds());
  }
  if (one != 0) return;
  for (const Event& event :
       std::vector<Event>{AllocationRequested{}, AllocationSubmitted{}, AllocationGranted{},
                          AllocationLaunchFailed{}, AllocationActivated{}, AllocationReleasing{},
                          AllocationEnded{}, WorkerJoined{}, NodeEnrolled{}})
    EXPECT_TRUE(met.contains(event.index())) << "never met: " << TypeOf(event);
}

}  // namespace
}  // namespace assay::sim
