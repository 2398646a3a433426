// The coordinator in the simulation: the loop, the queue, the parking and the effects of the
// product, on its store, without its threads. It loses power at any commit and between any two
// answers, is shut down, and starts again.

#ifndef TESTS_SIM_SIM_SERVER_H_
#define TESTS_SIM_SIM_SERVER_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "common/log.h"
#include "server/core/core.h"
#include "server/core/desired.h"
#include "server/runtime/core_loop.h"
#include "server/runtime/effect_handler.h"
#include "server/store/reader.h"
#include "tests/sim/answers.h"
#include "tests/sim/history.h"
#include "tests/sim/network.h"
#include "tests/sim/sim_judge.h"
#include "tests/sim/sim_store.h"

namespace assay::sim {

class SimServer {
 public:
  using Callback = std::function<void(const absl::StatusOr<core::Reply>&)>;

  SimServer(Network* network, Coverage* coverage, std::string path)
      : network_(*network),
        coverage_(*coverage),
        path_(std::move(path)),
        clock_(network),
        history_(coverage, Policy()) {
    Start();
    Minute();
  }

  // A command has arrived. `callback` is what leaves again; never, if the server is or goes down.
  void Receive(core::Command command, const Callback& callback,
               runtime::IsAwaited is_awaited = {}) {
    if (loop_ == nullptr) return;
    const int64_t id = ++last_call_;
    Call call{.command = command, .came_us = network_.now_us()};
    runtime::QueuedCommand item{std::move(command),
                                [this, id, callback](auto reply) { Answer(id, callback, reply); },
                                std::move(is_awaited)};
    calls_.emplace(id, std::move(call));
    absl::Status status = loop_->CheckRoomFor(item.command);
    if (status.ok()) status = queue_->Push(&item);
    if (status.ok()) return TurnAfter(network_.Delay(network_.pace.commit_us_max));
    ++coverage_.met[absl::StrCat("command turned away: ", absl::StatusCodeToString(status.code()))];
    item.callback(status);
  }

  // From which generation on a certificate that is issued now is good.
  int64_t CertificateGeneration(const std::string& worker) const {
    return certificates_.ValidFrom(worker);
  }

  // True if an entry waits for a restart to be scored.
  bool is_score_missing() const { return judgements_.is_score_missing; }
  bool is_up() const { return loop_ != nullptr; }
  const History& history() const { return history_; }

  // Asks it to end in order; it starts again a little later.
  void Restart() {
    if (loop_ == nullptr || queue_->is_closed()) return;
    ++coverage_.met["shutdown"];
    queue_->Close();
    TurnAfter(network_.Delay(network_.pace.commit_us_max));
  }

  // What is on disk is what the log says.
  void CheckRows() {
    const auto loaded = store_->Load();
    CHECK_OK(loaded.status());
    EXPECT_TRUE(*loaded == history_.Alive()) << "rows differ from the fold of the log";
    const std::vector<std::string> differences = store_->FactDifferences();
    EXPECT_TRUE(differences.empty()) << absl::StrJoin(differences, "\n");
  }

 private:
  static core::Policy Policy() {
    core::Policy policy;
    policy.secret = "secret";
    policy.preflight.checks = {
        {.check = "memory", .policy = core::CheckPolicy::kGate},
        {.check = "quiet", .policy = core::CheckPolicy::kWarn},
        {.check = core::kFabricLinkRate, .policy = core::CheckPolicy::kGate}};
    return policy;
  }

  void Start() {
    store_ = std::make_unique<SimStore>(&network_, &history_, &coverage_, path_);
    CheckRows();
    judgements_.is_score_missing = false;
    auto reader = store::Reader::Open(path_);
    CHECK_OK(reader.status());
    effects_ = std::make_unique<runtime::EffectHandler>(
        std::make_unique<SimJudge>(&network_, &coverage_, &judgements_), *std::move(reader));
    told_seq_ = 0;
    watchers_ = std::make_unique<runtime::Watchers>();
    watchers_->Subscribe({}, [this](int64_t seq) { Told(seq); });
    queue_ = std::make_unique<runtime::CommandQueue>(network_.pace.queue_limit);
    const runtime::CoreLoop::Parts parts = {&clock_, store_.get(), watchers_.get(), &tokens_,
                                            &certificates_};
    core::Core core(Policy(), *store_->Load(), absl::ToUnixMicros(clock_.Wall()));
    loop_ = std::make_unique<runtime::CoreLoop>(
        parts, std::move(core), [this](const auto& effects) { CarryOut(effects); },
        [this] { ++coverage_.met["checkpoint beside the commits"]; }, options_);
    Receive({std::string(core::kCoordinator), core::LauncherStarted{.launcher = "attach"}},
            nullptr);
    TurnAfter(0);
  }

  void Crash() {
    is_turn_ = false;
    superseded_.clear();
    store_->LoseCache();
    calls_.clear();
    Down();
  }

  // As CoreThread: what waited was handled, and nothing has come since.
  void End() {
    loop_->AnswerAllParked();
    EXPECT_EQ(calls_.size(), 0u) << "a call is not answered at the end";
    Down();
  }

  void Down() {
    ++life_;
    turn_at_us_.reset();
    loop_.reset();
    effects_.reset();
    queue_.reset();
    watchers_.reset();
    store_.reset();
    network_.After(kSecond * (1 + network_.Below(30)), [this] { Start(); });
  }

  // As CoreThread: when commands wait or the loop's time has come, whatever is first.
  void TurnAfter(int64_t delay_us) {
    const int64_t at_us = network_.now_us() + delay_us;
    if (turn_at_us_.has_value() && *turn_at_us_ <= at_us) return;
    turn_at_us_ = at_us;
    network_.After(delay_us, [this, at_us, life = life_] {
      if (life == life_ && turn_at_us_ == at_us) Turn();
    });
  }

  void Turn() {
    turn_at_us_.reset();
    if (network_.Permille(network_.troubles.clock_step_permille)) StepClock();
    std::vector<runtime::QueuedCommand> batch = queue_->Take(network_.pace.batch_max);
    const bool is_idle = batch.empty();
    if (batch.size() > 1) ++coverage_.met["batch of several"];
    if (!is_idle) turn_began_with_ = history_.state().workers;
    const int64_t refused_count = store_->refused_count();
    const int64_t credential_count = history_.credential_count();
    try {
      is_turn_ = true;
      loop_->HandleBatch(std::move(batch));
      store_->EndTurn();
    } catch (const PowerLoss&) {
      return Crash();
    }
    is_turn_ = false;
    if (store_->refused_count() > refused_count) {
      EXPECT_TRUE(loop_->core().state() == history_.Alive()) << "memory is ahead of the disk";
    }
    if (history_.credential_count() > credential_count) CheckCredentials();
    CheckCalls();
    EXPECT_EQ(told_seq_, history_.state().last_seq) << "watchers wait";
    if (is_idle && queue_->is_closed() && queue_->is_empty()) return End();
    const int64_t wait_us = absl::ToInt64Microseconds(loop_->TimeToWait());
    const bool is_more = !queue_->is_empty() || queue_->is_closed();
    TurnAfter(is_more ? kMillisecond : std::max(wait_us, kMillisecond));
  }

  void Answer(int64_t id, const Callback& callback, const absl::StatusOr<core::Reply>& reply) {
    const auto it = calls_.find(id);
    ASSERT_TRUE(it != calls_.end()) << "a call is answered twice";
    store_->CountAnswer();
    const Call call = std::move(it->second);
    calls_.erase(it);
    if (reply.ok()) {
      ++coverage_.answered[call.command.body.index()];
      if (!call.is_parked) Heard(call.command);
    } else if (is_turn_) {
      // What the worker has said counts, though its call was refused: it calls again.
      if (const auto* poll = std::get_if<core::Synchronize>(&call.command.body))
        superseded_.insert(poll->worker);
    }
    CheckAnswer(call.command, reply, turn_began_with_, history_.state());
    if (callback) callback(reply);
  }

  void Told(int64_t seq) {
    EXPECT_LE(seq, history_.state().last_seq) << "told of what is not committed";
    told_seq_ = seq;
  }

  // Judges take their time; what they say of a dead server is lost.
  void CarryOut(const std::vector<core::Effect>& effects) {
    for (const core::Effect& effect : effects) {
      network_.After(network_.Delay(kSecond), [this, effect, life = life_] {
        if (life != life_) return;
        std::optional<core::Command> result = effects_->Handle(effect);
        if (!result.has_value()) return;
        network_.After(network_.Delay(network_.pace.judge_us_max),
                       [this, command = *std::move(result), life] {
                         if (life == life_) Receive(command, nullptr);
                       });
      });
    }
  }

  void StepClock() {
    ++coverage_.met["wall clock that was set"];
    clock_.StepWall(kSecond * (static_cast<int64_t>(network_.Below(7200)) - 3600));
  }

  void Minute() {
    if (loop_ != nullptr) {
      EXPECT_TRUE(loop_->core().state() == history_.Alive()) << "memory is not what is alive";
    }
    if (network_.Permille(network_.troubles.shutdown_permille)) Restart();
    network_.After(kMinute, [this] { Minute(); });
  }

  struct Call {
    core::Command command;
    int64_t came_us = 0;
    bool is_parked = false;
  };

  void Heard(const core::Command& command) {
    const auto* call = std::get_if<core::Synchronize>(&command.body);
    if (call != nullptr) history_.Heard(call->worker, network_.now_us());
  }

  // Between turns only what waits in the queue, and calls of workers that are where they should be,
  // are not answered.
  void CheckCalls() {
    std::map<std::string, int> parked;
    size_t waiting = queue_->size();
    for (auto it = calls_.rbegin(); it != calls_.rend(); ++it) {
      Call& call = it->second;
      if (waiting > 0) {
        --waiting;
        continue;
      }
      const auto* poll = std::get_if<core::Synchronize>(&call.command.body);
      ASSERT_TRUE(poll != nullptr) << "command " << call.command.body.index() << " is not answered";
      if (!std::exchange(call.is_parked, true)) {
        Heard(call.command);
        superseded_.erase(poll->worker);
      }
      EXPECT_EQ(++parked[poll->worker], 1) << poll->worker << " has called again";
      const core::Desired desired = loop_->core().DesiredFor(poll->worker);
      EXPECT_TRUE(superseded_.contains(poll->worker) || IsSatisfied(desired, poll->report))
          << poll->worker << " is not told what to do: " << static_cast<int>(desired.action);
      EXPECT_LE(network_.now_us() - call.came_us, options_.park_max_us + 5 * kSecond)
          << poll->worker << " is parked for ever";
      EXPECT_GE(call.command.certificate_generation.value_or(0),
                certificates_.ValidFrom(poll->worker))
          << poll->worker << " waits with a certificate that was revoked";
    }
  }

  // What calls are let in by is what was committed.
  void CheckCredentials() {
    for (const auto& [id, token] : history_.state().tokens)
      EXPECT_EQ(tokens_.Find(token.secret_sha256), token) << id;
    for (const auto& [name, worker] : history_.state().workers)
      EXPECT_EQ(certificates_.ValidFrom(name), worker.certificate_generation) << name;
  }

  Network& network_;
  Coverage& coverage_;
  const std::string path_;
  const runtime::CoreLoopOptions options_;
  SimClock clock_;
  History history_;
  Judgements judgements_;
  runtime::TokenTable tokens_;
  runtime::CertificateTable certificates_;
  std::unique_ptr<SimStore> store_;
  std::unique_ptr<runtime::Watchers> watchers_;
  std::unique_ptr<runtime::EffectHandler> effects_;
  std::unique_ptr<runtime::CommandQueue> queue_;
  std::unique_ptr<runtime::CoreLoop> loop_;  // null: it is down

  int64_t life_ = 0;  // starts so far
  std::optional<int64_t> turn_at_us_;
  int64_t last_call_ = 0;
  std::map<int64_t, Call> calls_;  // let in and not answered, in order of arrival
  bool is_turn_ = false;
  std::set<std::string> superseded_;  // workers whose parked call is not their last word
  int64_t told_seq_ = 0;
  std::map<std::string, core::Worker> turn_began_with_;
};

}  // namespace assay::sim

#endif  // TESTS_SIM_SIM_SERVER_H_
