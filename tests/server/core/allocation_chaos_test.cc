// Leases of nodes under a launcher, agents and a coordinator that fail at random.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "common/random.h"
#include "tests/server/core/world.h"

namespace assay::core {
namespace {

using core::testing::kSecond;
using core::testing::SomeSpec;
using Outcome = LaunchReported::Outcome;

// A launcher that grants, fails, loses and repeats at random, agents that come and go, and a core
// that is started anew from what a store would hold. After each step: each gang is of one
// allocation, no worker serves two runs, and a fold of the log is the state.
class Chaos {
 public:
  explicit Chaos(uint64_t seed) : random_(seed, Purpose::kTest) { Restart(); }

  void Step() {
    switch (Below(9)) {
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
        return Restart();
      case 6:
        now_us_ += static_cast<int64_t>(Below(400)) * kSecond;
        return Handle("coordinator", Tick{});
      default:
        return Call();
    }
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
    }
    State folded;
    for (const RecordedEvent& event : log_)
      Apply(event, &folded);
    DropAllRedundant(&folded);
    ASSERT_EQ(folded, state);
  }

 private:
  uint32_t Below(uint32_t bound) { return random_.Below(draw_++, bound); }
  AllocationId Some() { return AllocationId{1 + Below(1 + Recent())}; }
  uint32_t Recent() const { return static_cast<uint32_t>(core_->state().last_allocation); }

  void Handle(const std::string& principal, CommandBody body) {
    std::vector<Command> commands;
    commands.push_back({principal, std::move(body)});
    const core::Outcome outcome = core_->Handle(commands, now_us_);
    if (Below(10) == 0) {  // the commit is refused
      core_->Reset(committed_);
      return;
    }
    log_.insert(log_.end(), outcome.events.begin(), outcome.events.end());
    core_->DropRedundant();
    committed_ = core_->state();
    wanted_.insert(wanted_.end(), outcome.effects.begin(), outcome.effects.end());
  }

  void Restart() {
    wanted_.clear();
    Index(&committed_);
    core_ = std::make_unique<Core>(Policy{.secret = "s"}, committed_, now_us_);
    Handle("root", AddDataset{core::testing::SomeDataset()});
    Handle("coordinator", LauncherStarted{.launcher = "local",
                                          .allocation_count_max = 2,
                                          .node_count_min = 1,
                                          .node_count_max = 3,
                                          .is_wanted_at_once = Below(2) == 0});
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
    if (Below(4) == 0) report.deadline_us = now_us_ + 300 * kSecond;
    return report;
  }

  void Report(LaunchReported::Outcome outcome) {
    LaunchReported report = Granted(Some());
    report.outcome = outcome;
    Handle("coordinator", report);
  }

  // A worker calls: idle, or executing or done with what it holds.
  void Call() {
    const std::string name =
        Below(3) == 0 ? absl::StrCat("w", Below(2)) : absl::StrCat("n", Below(3), "-", Below(3));
    Synchronize call{.worker = name, .description = {.incarnation = "i1"}};
    if (name[0] == 'n' && Below(2) == 0)
      call.description.labels = {{std::string(kAllocationLabel), Some().ToString()}};
    const auto it = core_->state().workers.find(name);
    if (it != core_->state().workers.end() && !it->second.run.is_none() && Below(4) > 0) {
      call.report = {.phase = Below(2) == 0 ? WorkerPhase::kExecuting : WorkerPhase::kFinished,
                     .run = it->second.run,
                     .generation = it->second.generation};
    }
    call.is_leaving = Below(12) == 0;
    Handle(name, call);
  }

  const Stream random_;
  uint64_t draw_ = 0;
  int64_t now_us_ = core::testing::kStart;
  int request_count_ = 0;
  State committed_;
  std::vector<RecordedEvent> log_;
  std::vector<Effect> wanted_;
  std::unique_ptr<Core> core_;
};

TEST(AllocationPropertyTest, HoldsWhateverTheLauncherDoes) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Chaos chaos(seed);
    for (int step = 0; step < 300; ++step) {
      chaos.Step();
      ASSERT_NO_FATAL_FAILURE(chaos.Check()) << "step " << step;
    }
  }
}

}  // namespace
}  // namespace assay::core
