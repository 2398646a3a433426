#include "worker/agent/telemetry/asking_thread.h"

#include <chrono>
#include <optional>
#include <thread>

#include "gtest/gtest.h"

namespace assay::agent {
namespace {

// Also those that come while somebody looks whether they have come.
TEST(AskingThreadTest, EveryAnswerIsTakenOnce) {
  constexpr int kAnswers = 100'000;
  AskingThread<int> thread([] { return [count = 0]() mutable { return ++count; }; },
                           std::chrono::seconds(10));
  int expected = 1;
  while (expected <= kAnswers) {
    const std::optional<int> answer = thread.TakeAndAsk();
    if (answer.has_value()) {
      ASSERT_EQ(*answer, expected++);
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace
}  // namespace assay::agent
