// Meters that are asked in a thread of their own: what their samples hold when answers are late,
// stand still or end.

#include "worker/agent/telemetry/asked_meter.h"

#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"
#include "tests/telemetry/meter_sample.h"

namespace assay::agent {
namespace {

using telemetry::MeterState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using testing::StatusIs;

constexpr int64_t kSampleNs = 1'000'000'000;

class AskedMeterTest : public ::testing::Test {
 protected:
  // Says what stands in energy_uj and power_mw; below 0: nothing.
  AskedMeter::Ask MakeAsk() {
    return [this] {
      held_.wait(true);
      MeterAnswer answer;
      if (energy_uj_ >= 0) answer.energy_uj = energy_uj_;
      if (power_mw_ >= 0) answer.power_mw = power_mw_;
      return answer;
    };
  }

  std::atomic<bool> held_ = false;
  std::atomic<int64_t> energy_uj_ = -1;
  std::atomic<int64_t> power_mw_ = -1;
  std::atomic<int64_t> now_ns_ = kSampleNs;
};

TEST_F(AskedMeterTest, ACounterThatDoesNotMoveForFiveSecondsSaysNothing) {
  energy_uj_ = 7'000'000;
  power_mw_ = 400'000;
  AskedMeter meter(
      "node.m", [this] { return MakeAsk(); }, std::chrono::milliseconds(5000),
      [this] { return now_ns_.load(); });
  EXPECT_EQ(SampleAnswered(&meter).energy_uj, 7'000'000);
  now_ns_ += kSampleNs;
  EXPECT_EQ(SampleAnswered(&meter).energy_uj, 7'000'000) << "some count once a second";
  for (int i = 0; i < 6; ++i) {
    now_ns_ += kSampleNs;
    SampleAnswered(&meter);
  }
  const MeterSample still = SampleAnswered(&meter);
  EXPECT_EQ(still.state, MeterState::kStandsStill);
  EXPECT_FALSE(still.energy_uj.has_value());
  EXPECT_FALSE(still.power_mw.has_value());

  energy_uj_ += 8'000'000;
  SampleAnswered(&meter);  // what was asked before
  EXPECT_EQ(SampleAnswered(&meter).energy_uj, 15'000'000);
}

TEST_F(AskedMeterTest, PowerThatIsTheSameForTwoMinutesSaysNothing) {
  power_mw_ = 400'000;
  AskedMeter meter(
      "node.m", [this] { return MakeAsk(); }, std::chrono::milliseconds(5000),
      [this] { return now_ns_.load(); });
  EXPECT_EQ(SampleAnswered(&meter).power_mw, 400'000);
  MeterSample last;
  for (int i = 0; i < 119; ++i) {
    now_ns_ += kSampleNs;
    last = SampleAnswered(&meter);
  }
  EXPECT_EQ(last.power_mw, 400'000) << "a steady load is none that stands still";
  for (int i = 0; i < 3; ++i) {
    now_ns_ += kSampleNs;
    last = SampleAnswered(&meter);
  }
  EXPECT_EQ(last.state, MeterState::kStandsStill);
  EXPECT_FALSE(last.power_mw.has_value());
}

TEST_F(AskedMeterTest, AnAnswerThatHangsDelaysNoSampleAndNobodyWaitsForIt) {
  power_mw_ = 400'000;
  held_ = true;
  const auto begin = std::chrono::steady_clock::now();
  {
    AskedMeter meter(
        "node.m", [this] { return MakeAsk(); }, std::chrono::milliseconds(0),
        [this] { return now_ns_.load(); });
    SampleOnce(&meter);
    for (int i = 0; i < 100; ++i) {
      const MeterSample sample = SampleOnce(&meter);
      EXPECT_EQ(sample.state, MeterState::kLate);
      EXPECT_FALSE(sample.power_mw.has_value());
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
    held_ = false;
    held_.notify_all();
    EXPECT_EQ(SampleAnswered(&meter).power_mw, 400'000);
  }
}

TEST_F(AskedMeterTest, AnOldAnswerIsNoReadingOfNow) {
  power_mw_ = 400'000;
  std::atomic<int> stamp_count = 0;
  const std::thread::id own = std::this_thread::get_id();
  AskedMeter meter(
      "node.m", [this] { return MakeAsk(); }, std::chrono::milliseconds(5000),
      [&] {
        if (std::this_thread::get_id() == own) return now_ns_.load();
        const int64_t now_ns = now_ns_;
        ++stamp_count;
        return now_ns;
      });
  SampleOnce(&meter);
  while (stamp_count < 1)
    std::this_thread::yield();
  // Nobody samples for ten seconds.
  now_ns_ += 10 * kSampleNs;
  const MeterSample late = SampleOnce(&meter);
  EXPECT_FALSE(late.power_mw.has_value());
  EXPECT_EQ(SampleAnswered(&meter).power_mw, 400'000);
}

TEST(MeterSecretsTest, AreOfTheirOwnerAlone) {
  const testing::TempDir dir;
  const std::string path = dir.Path("secrets");
  testing::WriteFile(path, "# of the PDU\nuser  assay\nauth SHA-256 a b c\n\n");
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  const auto secrets = ReadMeterSecrets(path);
  ASSERT_THAT(secrets.status(), testing::IsOk());
  EXPECT_THAT(*secrets, ElementsAre(Pair("auth", "SHA-256 a b c"), Pair("user", "assay")));
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  EXPECT_THAT(ReadMeterSecrets(path).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("chmod 600")));
  testing::WriteFile(path, "user\n");
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_THAT(ReadMeterSecrets(path).status(), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace assay::agent
