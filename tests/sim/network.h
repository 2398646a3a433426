// Simulated time and a network that delays, drops and repeats. One seed, one course of events.

#ifndef TESTS_SIM_NETWORK_H_
#define TESTS_SIM_NETWORK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "common/random.h"

namespace assay::sim {

inline constexpr int64_t kMillisecond = 1000;  // times are microseconds
inline constexpr int64_t kSecond = 1000 * kMillisecond;
inline constexpr int64_t kMinute = 60 * kSecond;

// Each seed switches some kinds of trouble off, so that the others are met more often.
struct Troubles {
  uint32_t drop_percent = 0;
  uint32_t repeat_percent = 0;
  uint32_t server_crash_permille = 0;  // per command handled
  uint32_t agent_crash_permille = 0;   // per input taken
  uint32_t trainer_failure_percent = 0;
  uint32_t long_silence_percent = 0;  // of agent crashes that last for longer than a lease
};

class Network {
 public:
  explicit Network(uint64_t seed) : random_(seed, Purpose::kTest) {
    const auto maybe = [this](uint32_t value) { return Below(2) == 0 ? 0 : Below(value) + 1; };
    troubles.drop_percent = maybe(20);
    troubles.repeat_percent = maybe(20);
    troubles.server_crash_permille = maybe(20);
    troubles.agent_crash_permille = maybe(10);
    troubles.trainer_failure_percent = maybe(30);
    troubles.long_silence_percent = maybe(20);
  }

  uint32_t Below(uint32_t bound) { return random_.Below(draw_++, bound); }
  bool Percent(uint32_t percent) { return Below(100) < percent; }
  bool Permille(uint32_t permille) { return Below(1000) < permille; }

  int64_t now_us() const { return now_us_; }

  // Does `action` after `delay_us`.
  void After(int64_t delay_us, std::function<void()> action) {
    agenda_.emplace(std::make_pair(now_us_ + delay_us, ++order_), std::move(action));
  }

  // Does `arrival` once, never, or twice, each after a delay of its own.
  void Send(const std::function<void()>& arrival) {
    if (Percent(troubles.drop_percent)) return;
    After(Delay(), arrival);
    if (Percent(troubles.repeat_percent)) After(Delay() * 20, arrival);
  }

  // Does what comes next. False if nothing ever will.
  bool Step() {
    if (agenda_.empty()) return false;
    auto next = agenda_.extract(agenda_.begin());
    now_us_ = next.key().first;
    next.mapped()();
    return true;
  }

  Troubles troubles;

 private:
  int64_t Delay() { return kMillisecond * (1 + Below(200)); }

  Stream random_;
  uint64_t draw_ = 0;
  int64_t now_us_ = 1'700'000'000 * kSecond;
  uint64_t order_ = 0;
  std::map<std::pair<int64_t, uint64_t>, std::function<void()>> agenda_;
};

}  // namespace assay::sim

#endif  // TESTS_SIM_NETWORK_H_
