// Simulated time, and a network that delays, drops and repeats. One seed, one course of events.

#ifndef TESTS_SIM_NETWORK_H_
#define TESTS_SIM_NETWORK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/time/time.h"

#include "common/clock.h"
#include "common/random.h"

namespace assay::sim {

inline constexpr int64_t kMillisecond = 1000;  // times are microseconds
inline constexpr int64_t kSecond = 1000 * kMillisecond;
inline constexpr int64_t kMinute = 60 * kSecond;

// Each seed switches some kinds of trouble off, so that the others are met more often.
struct Troubles {
  uint32_t drop_percent = 0;
  uint32_t repeat_percent = 0;
  uint32_t power_loss_permille = 0;       // per commit
  uint32_t shutdown_permille = 0;         // per minute: the coordinator is asked to end
  uint32_t full_disk_permille = 0;        // per commit: full for a while
  uint32_t forbidden_percent = 0;         // of what people ask: what the schema does not allow
  uint32_t oversize_percent = 0;          // of verdicts and of entries: too large for a row
  uint32_t judge_failure_percent = 0;     // of judgements
  uint32_t verdict_against_percent = 0;   // of judgements: not compliant, or no score
  uint32_t clock_step_permille = 0;       // per turn: somebody sets the wall clock
  uint32_t agent_crash_permille = 0;      // per input taken
  uint32_t agent_leave_permille = 0;      // per tick: the agent is asked to end
  uint32_t trainer_failure_percent = 0;   //
  uint32_t check_failure_percent = 0;     // of pre-flights: a problem, or no answer
  uint32_t long_silence_percent = 0;      // of agent crashes that last for longer than a lease
  uint32_t interference_permille = 1000;  // of the deeds of operators, who cancel, drain, revoke
};

// How the coordinator is set up, and how fast its disk and its judges are.
struct Pace {
  size_t queue_limit = 0;
  size_t batch_max = 0;
  int64_t commit_us_max = 0;  // from a command's arrival to its turn
  int64_t judge_us_max = 0;
};

class Network {
 public:
  explicit Network(uint64_t seed) : random_(seed, Purpose::kTest) {
    const auto maybe = [this](uint32_t value) { return Below(2) == 0 ? 0 : Below(value) + 1; };
    troubles.drop_percent = maybe(20);
    troubles.repeat_percent = maybe(20);
    troubles.power_loss_permille = maybe(40);
    troubles.shutdown_permille = maybe(100);
    troubles.full_disk_permille = maybe(5);
    troubles.forbidden_percent = maybe(30);
    troubles.oversize_percent = maybe(30);
    troubles.judge_failure_percent = maybe(30);
    troubles.verdict_against_percent = maybe(30);
    troubles.clock_step_permille = maybe(3);
    troubles.agent_crash_permille = maybe(10);
    troubles.agent_leave_permille = maybe(10);
    troubles.trainer_failure_percent = maybe(30);
    troubles.long_silence_percent = maybe(20);
    troubles.check_failure_percent = maybe(30);
    troubles.interference_permille = maybe(1000);
    constexpr size_t kQueueLimits[] = {3, 10, 10000};
    constexpr size_t kBatches[] = {1, 2, 5, 1000};
    constexpr int64_t kCommits[] = {kMillisecond, 50 * kMillisecond, kSecond};
    constexpr int64_t kJudgements[] = {kSecond, kMinute, 10 * kMinute};
    pace = {kQueueLimits[Below(3)], kBatches[Below(4)], kCommits[Below(3)], kJudgements[Below(3)]};
  }

  uint32_t Below(uint32_t bound) { return random_.Below(draw_++, bound); }
  bool Percent(uint32_t percent) { return Below(100) < percent; }
  bool Permille(uint32_t permille) { return Below(1000) < permille; }
  // At least a millisecond, less than `max_us` more.
  int64_t Delay(int64_t max_us) {
    return kMillisecond * (1 + Below(static_cast<uint32_t>(max_us / kMillisecond)));
  }

  int64_t now_us() const { return now_us_; }

  // Does `action` after `delay_us`.
  void After(int64_t delay_us, std::function<void()> action) {
    agenda_.emplace(std::make_pair(now_us_ + delay_us, ++order_), std::move(action));
  }

  // Does `arrival` once, never, or twice, each after a delay of its own.
  void Send(const std::function<void()>& arrival) {
    if (Percent(troubles.drop_percent)) return;
    After(Delay(200 * kMillisecond), arrival);
    if (Percent(troubles.repeat_percent)) After(Delay(200 * kMillisecond) * 20, arrival);
  }

  // Does what comes next. False if nothing ever will.
  bool Step() {
    if (agenda_.empty()) return false;
    auto next = agenda_.extract(agenda_.begin());
    now_us_ = next.key().first;
    next.mapped()();
    return true;
  }

  // From now on everything works.
  void Heal() {
    troubles = {.interference_permille = 0};
    pace.queue_limit = 10000;
  }

  Troubles troubles;
  Pace pace;

 private:
  Stream random_;
  uint64_t draw_ = 0;
  int64_t now_us_ = 1'700'000'000 * kSecond;
  uint64_t order_ = 0;
  std::map<std::pair<int64_t, uint64_t>, std::function<void()>> agenda_;
};

// The coordinator's clocks: one that runs, and one that people set.
class SimClock final : public Clock {
 public:
  explicit SimClock(Network* network) : network_(*network) {}

  absl::Time Wall() const override {
    return absl::FromUnixMicros(network_.now_us() + wall_ahead_us_);
  }
  MonoTime Mono() const override { return MonoTime{network_.now_us() * 1000}; }

  void StepWall(int64_t step_us) { wall_ahead_us_ += step_us; }

 private:
  Network& network_;
  int64_t wall_ahead_us_ = 0;
};

}  // namespace assay::sim

#endif  // TESTS_SIM_NETWORK_H_
