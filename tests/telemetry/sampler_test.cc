#include "worker/agent/telemetry/sampler.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::agent {
namespace {

using ::testing::ElementsAre;
using testing::IsOk;

constexpr int64_t kSecond = 1'000'000'000;

// Tells how often it was asked, and can every second time.
class CountingSource final : public TelemetrySource {
 public:
  const std::vector<telemetry::Column>& columns() const override { return columns_; }
  void Sample(std::span<int64_t> values) override {
    values[0] = ++count_;
    if (count_ % 2 == 0) values[1] = -count_;
  }

 private:
  const std::vector<telemetry::Column> columns_ = {{"asked", "times", true}, {"even", "times"}};
  int64_t count_ = 0;
};

class SamplerTest : public ::testing::Test {
 protected:
  SamplerTest() {
    std::vector<std::unique_ptr<TelemetrySource>> sources;
    sources.push_back(std::make_unique<CountingSource>());
    sources.push_back(std::make_unique<CountingSource>());
    absl::StatusOr<std::unique_ptr<Sampler>> sampler = Sampler::Create(
        path_, live_path_, std::move(sources), {.boot_id = "boot"},
        {.node_ns = [this] { return node_ns_; }, .cpu_ns = [this] { return cpu_ns_; }});
    CHECK_OK(sampler.status());
    sampler_ = *std::move(sampler);
  }
  // Samples that come when they should, at a price.
  void SampleFor(int64_t seconds, int64_t cost_ns) {
    for (const int64_t end_ns = node_ns_ + seconds * kSecond; node_ns_ < end_ns;) {
      ASSERT_THAT(sampler_->Sample(), IsOk());
      cpu_ns_ += cost_ns;
      node_ns_ += absl::ToInt64Nanoseconds(sampler_->interval());
    }
  }

  testing::TempDir dir_;
  const std::string path_ = dir_.Path("telemetry.bin");
  const std::string live_path_ = dir_.Path("figures");
  int64_t node_ns_ = 5 * kSecond;
  int64_t cpu_ns_ = 3 * kSecond;  // of the thread, before it sampled anything
  std::unique_ptr<Sampler> sampler_;
};

TEST_F(SamplerTest, WritesWhatItsSourcesSayAndWhatItCosts) {
  SampleFor(2, 1'000'000);
  ASSERT_THAT(sampler_->Flush(), IsOk());
  const absl::StatusOr<telemetry::Series> series = telemetry::ReadSeries(*ReadFile(path_));
  ASSERT_THAT(series, IsOk());
  EXPECT_EQ(series->header.columns.size(), 5U);
  EXPECT_EQ(series->header.columns.back().name, "sampler.cpu");
  EXPECT_THAT(series->at_ns, ElementsAre(5 * kSecond, 6 * kSecond));
  EXPECT_THAT(series->columns[2], ElementsAre(1, 2));
  EXPECT_THAT(series->columns[3], ElementsAre(telemetry::kMissing, -2));
  EXPECT_THAT(series->columns[4], ElementsAre(3'000'000, 3'001'000));
}

TEST_F(SamplerTest, GoesOnEachSecondWithinItsBudget) {
  SampleFor(600, 900'000);
  EXPECT_EQ(sampler_->interval(), absl::Seconds(1));
}

TEST_F(SamplerTest, HalvesItsRateUntilItKeepsToItsBudget) {
  SampleFor(600, 3'500'000);
  EXPECT_EQ(sampler_->interval(), absl::Seconds(4));
}

TEST_F(SamplerTest, WhatIsDearIsTakenOnceAMinuteAtLeast) {
  SampleFor(3600, 10 * kSecond);
  EXPECT_EQ(sampler_->interval(), absl::Minutes(1));
}

TEST(TelemetryTest, ARunLiesBetweenTwoSamples) {
  const testing::TempDir dir;
  int64_t now_ns = 0;
  {
    const Telemetry telemetry(dir.Path("telemetry.bin"), dir.Path("foreign.jsonl"),
                              dir.Path("figures"), "boot", [&now_ns] { return ++now_ns; });
  }
  const absl::StatusOr<telemetry::Series> series =
      telemetry::ReadSeries(*ReadFile(dir.Path("telemetry.bin")));
  ASSERT_THAT(series, IsOk());
  EXPECT_GE(series->at_ns.size(), 2U);
}

TEST(TelemetryTest, AFolderThatIsNotThereHarmsNoRun) {
  const Telemetry telemetry("/nowhere/telemetry.bin", "/nowhere/foreign.jsonl", "/nowhere/figures",
                            "boot", [] { return int64_t{1}; });
}

// Says how often it was asked.
class MeterSource final : public TelemetrySource {
 public:
  const std::vector<telemetry::Column>& columns() const override { return columns_; }
  bool is_meter() const override { return true; }
  void Sample(std::span<int64_t> values) override { values[0] = ++count_; }

 private:
  const std::vector<telemetry::Column> columns_ = {{"energy.node.test", "uJ", true}};
  int64_t count_ = 0;
};

TEST_F(SamplerTest, MetersAreAskedEachSecondWhateverTheRestCosts) {
  std::vector<std::unique_ptr<TelemetrySource>> sources;
  sources.push_back(std::make_unique<CountingSource>());
  sources.push_back(std::make_unique<MeterSource>());
  sampler_ = *Sampler::Create(
      path_, live_path_, std::move(sources), {.boot_id = "boot"},
      {.node_ns = [this] { return node_ns_; }, .cpu_ns = [this] { return cpu_ns_; }});
  SampleFor(61,
            10'000'000);  // a hundredth of a core: the rest is asked every two seconds from then on
  const int64_t slow_from_ns = node_ns_;
  SampleFor(20, 0);
  ASSERT_THAT(sampler_->Flush(), IsOk());
  const absl::StatusOr<telemetry::Series> series = telemetry::ReadSeries(*ReadFile(path_));
  ASSERT_THAT(series, IsOk());
  int asked = 0;
  int metered = 0;
  for (size_t i = 0; i < series->at_ns.size(); ++i) {
    if (series->at_ns[i] < slow_from_ns) continue;
    asked += series->columns[0][i] != telemetry::kMissing;
    metered += series->columns[2][i] != telemetry::kMissing;
  }
  EXPECT_EQ(metered, 20);
  EXPECT_EQ(asked, 10);
}

}  // namespace
}  // namespace assay::agent
