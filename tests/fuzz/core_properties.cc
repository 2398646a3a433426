#include "tests/fuzz/core_properties.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/log.h"
#include "server/core/apply.h"
#include "server/core/core.h"
#include "server/core/decide.h"
#include "server/store/codec.h"
#include "tests/fuzz/byte_source.h"
#include "tests/fuzz/core_commands.h"

namespace assay::testing {
namespace {

using core::RunId;
using core::SubmissionId;

constexpr int kStepsMax = 200;   // of one input
constexpr int kSettleMax = 100;  // batches until nothing happens any more by itself
constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kStart = 1'700'000'000 * kSecond;

core::Policy SomePolicy() {
  return core::Policy{.organization_run_limits = {{"limited", 1}}, .secret = "secret"};
}

// A core with a store that forgets nothing.
class Model {
 public:
  Model() : core_(std::make_unique<core::Core>(SomePolicy(), core::State{}, kStart)) {
    const core::Dataset dataset = {.id = "cosmo32", .benchmark = "cosmoflow", .path = "/d"};
    Do({.principal = "root", .body = core::AddDataset{dataset}}, /*is_refused=*/false);
  }

  void Step(ByteSource* bytes) {
    switch (bytes->Below(32)) {
      case 31:
        return Restart();
      case 30:
        return Wait(bytes);
      case 29:
        return DoTogether(bytes);
      case 28:
        return Do(core::Command(DecodeCommand(*core_, bytes)), /*is_refused=*/true);
      default:
        return Do(DecodeCommand(*core_, bytes), /*is_refused=*/false);
    }
  }

  // The log alone says what is there.
  void CheckFold() const {
    core::State folded;
    for (const core::RecordedEvent& event : log_)
      core::Apply(event, &folded);
    core::DropAllRedundant(&folded);
    CHECK(folded == core_->state());
  }

 private:
  using Orders = std::map<std::string, core::Desired>;

  // One command in a batch of its own. `is_refused`: the disk does not take what comes of it.
  void Do(core::Command command, bool is_refused) {
    Settle();
    const core::State stored = core_->state();
    Restore(command);
    const core::State before = core_->state();
    const Orders orders = AllOrders();
    std::vector<core::Command> commands;
    commands.push_back(std::move(command));
    const core::Outcome outcome = core_->Handle(std::move(commands), now_us_);
    CHECK(outcome.replies.size() == 1);
    CheckReplay(before, outcome);
    if (!outcome.replies[0].ok()) {
      CHECK(outcome.events.empty() && outcome.run_events.empty() && outcome.effects.empty());
      CHECK(core_->state() == before) << outcome.replies[0].status();
      CHECK(AllOrders() == orders) << outcome.replies[0].status();
    }
    if (!is_refused) return Commit(outcome);
    core_->Reset(stored);
    CHECK(core_->state() == stored);
  }

  // Several commands in one batch: some refused, some not.
  void DoTogether(ByteSource* bytes) {
    std::vector<core::Command> commands;
    for (uint32_t count = 2 + bytes->Below(4); count > 0; --count) {
      commands.push_back(DecodeCommand(*core_, bytes));
      Restore(commands.back());
    }
    const core::State before = core_->state();
    const size_t count = commands.size();
    const core::Outcome outcome = core_->Handle(std::move(commands), now_us_);
    CHECK(outcome.replies.size() == count);
    CheckReplay(before, outcome);
    Commit(outcome);
  }

  // Batches without a command, until time alone changes nothing more.
  void Settle() {
    for (int i = 0; i < kSettleMax; ++i) {
      const core::State before = core_->state();
      const core::Outcome outcome = core_->Handle({}, now_us_);
      CheckReplay(before, outcome);
      Commit(outcome);
      if (outcome.events.empty()) return;
    }
    LOG(FATAL) << "the state does not come to rest";
  }

  void Wait(ByteSource* bytes) {
    constexpr int64_t kWaits[] = {1,
                                  kSecond,
                                  2 * kSecond,
                                  5 * kSecond,
                                  11 * kSecond,
                                  -10 * kSecond,
                                  16 * 60 * kSecond,
                                  30 * 24 * 3600 * kSecond};
    now_us_ += bytes->Pick(kWaits);
    Settle();
  }

  // The process ends and starts again from what is stored.
  void Restart() {
    CheckFold();
    core_ = std::make_unique<core::Core>(SomePolicy(), core::State(core_->state()), now_us_);
    static_cast<void>(core_->PendingEffects());
  }

  void Restore(const core::Command& command) {
    const std::optional<core::Core::Target> missing = core_->Missing(command);
    if (!missing.has_value()) return;
    if (const auto* run = std::get_if<RunId>(&*missing); run != nullptr)
      return core_->Restore(archive_.at(*run));  // in memory, or stored
    core::ClosedSubmission closed;
    closed.submission = stored_.at(std::get<SubmissionId>(*missing));
    for (const RunId run : closed.submission.runs)
      closed.runs.push_back(archive_.at(run));
    core_->Restore(std::move(closed));
  }

  void CheckReplay(core::State before, const core::Outcome& outcome) {
    for (const core::RecordedEvent& event : outcome.events)
      core::Apply(event, &before);
    CHECK(before == core_->state());
    for (const core::RecordedEvent& event : outcome.events) {
      const absl::StatusOr<core::Event> read = std::visit(
          [&](const auto& e) {
            return store::DecodeEvent(e.kType, e.kVersion, store::EncodeEvent(event.event));
          },
          event.event);
      CHECK_OK(read.status());
      CHECK(*read == event.event) << core::TypeOf(event.event);
    }
  }

  void Commit(const core::Outcome& outcome) {
    CheckNewIds(outcome);
    CheckRunEvents(outcome);
    CheckInvariants();
    for (const core::RecordedEvent& event : outcome.events)
      log_.push_back(event);
    for (const auto& [id, run] : core_->state().runs)
      archive_[id] = run;
    for (const auto& [id, submission] : core_->state().submissions)
      stored_[id] = submission;
    core_->DropRedundant();
    CheckWakeup();
  }

  void CheckNewIds(const core::Outcome& outcome) {
    int64_t seq = log_.empty() ? 0 : log_.back().seq;
    for (const core::RecordedEvent& event : outcome.events) {
      CHECK(event.seq == ++seq);
      if (const auto* made = std::get_if<core::SubmissionCreated>(&event.event))
        CHECK(submissions_.insert(made->submission).second);
      if (const auto* made = std::get_if<core::SubmissionImported>(&event.event))
        CHECK(submissions_.insert(made->submission.id).second);
      if (const auto* made = std::get_if<core::TokenCreated>(&event.event))
        CHECK(tokens_.insert(made->token.id).second);
      if (const auto* queued = std::get_if<core::RunQueued>(&event.event))
        CHECK(archive_.count(queued->run) == 0);
    }
  }

  // Rows of the log of a run have no gap, in a node's order and in that of commits.
  void CheckRunEvents(const core::Outcome& outcome) {
    for (const core::RunEventBatch& batch : outcome.run_events) {
      CHECK(!batch.events.empty() && batch.events.size() <= core::kAppendCountMax);
      for (const core::RunEvent& event : batch.events) {
        const std::pair node(batch.run, event.node_rank);
        CHECK(event.seq == ++last_seqs_[node]);
        CHECK(event.order == ++last_orders_[batch.run]);
      }
    }
  }

  void CheckInvariants() {
    const core::State& state = core_->state();
    core::State indexed = state;
    core::Index(&indexed);
    CHECK(indexed == state);
    for (const auto& [name, worker] : state.workers)
      CheckWorker(state, worker);
    for (const auto& [id, run] : state.runs)
      CheckRun(state, run);
  }

  static void CheckWorker(const core::State& state, const core::Worker& worker) {
    if (worker.run.is_none()) return;
    const core::Run& run = state.runs.at(worker.run);
    CHECK(worker.generation == run.generation);
    CHECK(std::count_if(run.nodes.begin(), run.nodes.end(), [&](const core::RunNode& node) {
            return node.worker == worker.name && !node.is_released;
          }) == 1);
  }

  void CheckRun(const core::State& state, const core::Run& run) {
    if (state.active.count(run.id) > 0) {
      const core::Submission& submission = state.submissions.at(run.submission);
      CHECK(!core::IsTerminal(submission.state));
      CHECK(static_cast<int32_t>(run.nodes.size()) == submission.spec.node_count);
      for (const core::RunNode& node : run.nodes)
        CHECK(node.is_released || state.workers.at(node.worker).run == run.id);
    }
    if (!run.nodes.empty() && core::IsSettled(run)) CheckSealed(run);
    if (!core::IsTerminal(run.state)) return;
    const auto [it, is_new] = ended_.emplace(run.id, run);
    const core::Run& end = it->second;
    CHECK(run.state == end.state && run.ended_at_us == end.ended_at_us) << run.id;
    CHECK(run.facts == end.facts && run.generation == end.generation) << run.id;
  }

  // What still comes of a run on which nobody works any more is evidence of nothing.
  void CheckSealed(const core::Run& run) {
    const auto [it, is_new] = sealed_.emplace(run.id, run);
    const core::Run& end = it->second;
    CHECK(run.artifacts == end.artifacts) << run.id;
    CHECK(run.first_touch == end.first_touch) << run.id;
    CHECK(run.observed_touch == end.observed_touch) << run.id;
  }

  // Time passes only where something waits for it, and then something happens.
  void CheckWakeup() const {
    const std::optional<int64_t> wakeup_us = core_->NextWakeupUs();
    CHECK(!wakeup_us.has_value() || *wakeup_us > 0);
  }

  Orders AllOrders() const {
    Orders orders;
    for (const auto& [name, worker] : core_->state().workers)
      orders[name] = core_->DesiredFor(name);
    return orders;
  }

  int64_t now_us_ = kStart;
  std::unique_ptr<core::Core> core_;
  std::vector<core::RecordedEvent> log_;
  std::map<RunId, core::Run> archive_;               // every run, as last committed
  std::map<SubmissionId, core::Submission> stored_;  // the same of submissions, ended or not
  std::map<RunId, core::Run> ended_;                 // every run that has ended, as it was then
  std::map<RunId, core::Run> sealed_;  // every run that all nodes have ended, as it was then
  std::set<core::SubmissionId> submissions_;
  std::set<core::TokenId> tokens_;
  std::map<std::pair<RunId, int32_t>, int64_t> last_seqs_;
  std::map<RunId, int64_t> last_orders_;
};

}  // namespace

void CheckCoreProperties(absl::string_view bytes) {
  ByteSource source(bytes);
  Model model;
  for (int step = 0; step < kStepsMax && !source.is_empty(); ++step)
    model.Step(&source);
  model.CheckFold();
}

}  // namespace assay::testing
