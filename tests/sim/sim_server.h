// The coordinator in the simulation: the real core on the real store, crashed at any commit.

#ifndef TESTS_SIM_SIM_SERVER_H_
#define TESTS_SIM_SIM_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "common/log.h"
#include "server/core/apply.h"
#include "server/core/core.h"
#include "server/store/store.h"
#include "tests/sim/network.h"

namespace assay::sim {

class SimServer {
 public:
  using Callback = std::function<void(const absl::StatusOr<core::Reply>&)>;

  SimServer(Network* network, std::string path) : network_(*network), path_(std::move(path)) {
    Start();
    Tick();
  }

  // A command has arrived. `callback` is what leaves again; never, if the server is or goes down.
  void Receive(core::Command command, const Callback& callback) {
    if (core_ == nullptr) return;
    const bool crashes = network_.Permille(network_.troubles.server_crash_permille);
    const bool before_commit = network_.Below(2) == 0;
    Restore(command);
    std::vector<core::Command> commands;
    commands.push_back(std::move(command));
    const core::Outcome outcome = core_->Handle(std::move(commands), network_.now_us());
    if (crashes && before_commit) return Crash();
    Commit(outcome);
    if (crashes) return Crash();
    core_->DropRedundant();
    CheckInvariants();
    CarryOut(outcome.effects);
    if (callback) callback(outcome.replies[0]);
  }

  core::Desired DesiredFor(const std::string& worker) const {
    return core_ == nullptr ? core::Desired{} : core_->DesiredFor(worker);
  }
  bool is_up() const { return core_ != nullptr; }
  int crash_count() const { return crash_count_; }

  // What is on disk is what the log says.
  void CheckRowsEqualFold() {
    core::State folded;
    for (const core::RecordedEvent& event : log_)
      Apply(event, &folded);
    core::DropAllRedundant(&folded);
    const auto loaded = store_->Load();
    CHECK_OK(loaded.status());
    EXPECT_TRUE(*loaded == folded) << "rows differ from the fold of " << log_.size() << " events";
  }

 private:
  void Start() {
    store_ = *store::Store::Open(path_);
    CheckRowsEqualFold();
    core::Policy policy;
    policy.secret = "secret";
    core_ = std::make_unique<core::Core>(policy, *store_->Load(), network_.now_us());
    CarryOut(core_->PendingEffects());
  }

  void Crash() {
    ++crash_count_;
    core_.reset();
    store_.reset();
    network_.After(kSecond * (1 + network_.Below(30)), [this] { Start(); });
  }

  void Tick() {
    Receive({"coordinator", core::Tick{}}, nullptr);
    network_.After(5 * kSecond, [this] { Tick(); });
  }

  void Restore(const core::Command& command) {
    const std::optional<core::RunId> missing = core_->MissingRun(command);
    if (!missing.has_value()) return;
    absl::StatusOr<core::Run> run = store_->LoadRun(*missing);
    if (run.ok()) core_->Restore(*std::move(run));
  }

  void Commit(const core::Outcome& outcome) {
    CHECK_OK(store_->Commit(outcome, core_->state()));
    for (const core::RecordedEvent& event : outcome.events)
      log_.push_back(event);
  }

  // The judges are reliable, but slow; what they say of a dead server is lost.
  void CarryOut(const std::vector<core::Effect>& effects) {
    for (const core::Effect& effect : effects) {
      core::CommandBody verdict = core::Tick{};
      if (const auto* check = std::get_if<core::CheckLog>(&effect))
        verdict = core::LogChecked{check->run, {}, ""};
      if (const auto* score = std::get_if<core::ScoreSubmission>(&effect))
        verdict = core::SetScored{score->submission, 1.0, {}, "scored"};
      network_.After(kSecond, [this, verdict] { Receive({"coordinator", verdict}, nullptr); });
    }
  }

  // No worker serves two gangs, and every gang is whole.
  void CheckInvariants() const {
    const core::State& state = core_->state();
    std::set<std::string> busy;
    for (const core::RunId id : state.active) {
      const core::Run& run = state.runs.at(id);
      const core::SubmissionSpec& spec = state.submissions.at(run.submission).spec;
      ASSERT_EQ(static_cast<int32_t>(run.nodes.size()), spec.node_count) << id;
      for (const core::RunNode& node : run.nodes) {
        if (node.is_released) continue;  // its part is done; the run is being judged
        ASSERT_TRUE(busy.insert(node.worker).second) << node.worker << " serves two gangs";
        ASSERT_EQ(state.workers.at(node.worker).run, id);
      }
    }
  }

  Network& network_;
  const std::string path_;
  int crash_count_ = 0;
  std::vector<core::RecordedEvent> log_;  // all that was committed
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<core::Core> core_;
};

}  // namespace assay::sim

#endif  // TESTS_SIM_SIM_SERVER_H_
