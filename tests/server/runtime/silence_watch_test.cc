#include "server/runtime/silence_watch.h"

#include "gtest/gtest.h"

#include "tests/support/fake_clock.h"

namespace assay::runtime {
namespace {

using ::assay::testing::FakeClock;

class SilenceWatchTest : public ::testing::Test {
 protected:
  void Pass(absl::Duration duration) {
    clock_.Advance(duration);
    watch_.Look();
  }

  FakeClock clock_;
  SilenceWatch watch_{&clock_};
  std::atomic<int> silence_count_ = 0;
  const std::shared_ptr<SilenceWatch::Turn> turn_ = watch_.Watch([this] { ++silence_count_; });
};

TEST_F(SilenceWatchTest, EndsACallWhosePeerIsSilentForTooLongAndOnce) {
  turn_->GiveToPeer();

  Pass(SilenceWatch::kLimit - absl::Seconds(1));
  EXPECT_EQ(silence_count_, 0);
  Pass(absl::Seconds(1));
  EXPECT_EQ(silence_count_, 1);
  EXPECT_FALSE(turn_->TakeBack()) << "what comes later comes too late";
  turn_->GiveToPeer();
  Pass(2 * SilenceWatch::kLimit);
  EXPECT_EQ(silence_count_, 1);
}

TEST_F(SilenceWatchTest, EachMessageStartsItAnew) {
  for (int i = 0; i < 5; ++i) {
    turn_->GiveToPeer();
    Pass(SilenceWatch::kLimit - absl::Seconds(1));
    EXPECT_TRUE(turn_->TakeBack());
  }

  EXPECT_EQ(silence_count_, 0);
}

TEST_F(SilenceWatchTest, OurOwnTimeIsNotThePeers) {
  turn_->GiveToPeer();
  EXPECT_TRUE(turn_->TakeBack());

  Pass(2 * SilenceWatch::kLimit);

  EXPECT_EQ(silence_count_, 0);
}

TEST_F(SilenceWatchTest, ACallThatHasEndedIsForgotten) {
  std::atomic<int> count = 0;
  auto ended = watch_.Watch([&count] { ++count; });
  ended->GiveToPeer();
  ended.reset();

  Pass(2 * SilenceWatch::kLimit);

  EXPECT_EQ(count, 0);
}

}  // namespace
}  // namespace assay::runtime
