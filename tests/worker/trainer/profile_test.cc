// What a profile says, from counts whose answers are plain, and whole runs that are profiled.

#include "worker/trainer/profile.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/dataset/cosmo_dataset.h"
#include "common/file.h"
#include "common/json_reader.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/trainer/run_specs.h"
#include "worker/comm/single.h"
#include "worker/trainer/loop.h"

namespace assay {
namespace {

using testing::FakeClock;
using testing::IsOk;
using testing::SetHyperparameter;
using testing::TempDir;

double Number(const JsonValue& record, absl::string_view name) {
  const JsonValue* value = record.Find(name);
  EXPECT_NE(value, nullptr) << name;
  return value == nullptr ? 0 : value->ToDouble().value_or(-1);
}

TEST(ProfileTest, TimeSpentInASpanIsAddedToItsCount) {
  FakeClock clock;
  Profile profile(&clock);
  for (int batch = 0; batch < 3; ++batch) {
    const Profile::Span training(&profile, &ProfileCounts::train_s);
    {
      const Profile::Span wait(&profile, &ProfileCounts::input_wait_s);
      clock.Advance(absl::Milliseconds(250));
    }
    clock.Advance(absl::Seconds(2));
  }

  EXPECT_DOUBLE_EQ(profile.counts().input_wait_s, 0.75);
  EXPECT_DOUBLE_EQ(profile.counts().train_s, 6.75);
}

TEST(ProfileTest, ArithmeticGoesWithTheSamples) {
  FakeClock clock;
  Profile profile(&clock);
  profile.set_work({.train_flops = 3e9, .eval_flops = 1e9, .train_bytes = 5e6, .eval_bytes = 2e6});

  profile.Trained(4);
  profile.Trained(4);
  profile.Evaluated(3);

  EXPECT_EQ(profile.counts().train_samples, 8);
  EXPECT_DOUBLE_EQ(profile.counts().train_flops, 24e9);
  EXPECT_DOUBLE_EQ(profile.counts().eval_flops, 3e9);
  EXPECT_DOUBLE_EQ(profile.counts().train_bytes, 40e6);
  EXPECT_DOUBLE_EQ(profile.counts().eval_bytes, 6e6);
}

// Two ranks, 100 and 300 GFLOP in 4 s side by side: 100 GFLOP/s of a peak of 200.
TEST(ProfileTest, WorkIsSummedAndTimesAreMeans) {
  std::vector<ProfileCounts> ranks(2);
  ranks[0] = {.train_samples = 10,
              .train_flops = 100e9,
              .train_s = 4,
              .input_wait_s = 1,
              .read_bytes = 1000,
              .memory_peak_bytes = 70,
              .peak_flops_per_s = 100e9,
              .peak_threads = 2};
  ranks[1] = ranks[0];
  ranks[1].train_flops = 300e9;
  ranks[1].input_wait_s = 3;
  ranks[1].memory_peak_bytes = 50;
  for (ProfileCounts& rank : ranks)
    rank.traffic = {.by_size = {comm::OperationCounts{3, 48, 96, 500'000'000}},
                    .waiting_ns = 250'000'000};

  const JsonValue record(ProfileRecord({.epoch = 2, .ranks_per_sample = 2}, ranks));

  EXPECT_EQ(Number(record, "train_samples"), 10);  // both ranks share each
  EXPECT_DOUBLE_EQ(Number(record, "train_gflop"), 400);
  EXPECT_DOUBLE_EQ(Number(record, "train_gflop_per_s"), 100);
  EXPECT_DOUBLE_EQ(Number(record, "peak_gflop_per_s"), 200);
  EXPECT_DOUBLE_EQ(Number(record, "peak_share"), 0.5);
  EXPECT_DOUBLE_EQ(Number(record, "input_wait_s"), 2);
  EXPECT_DOUBLE_EQ(Number(record, "input_wait_max_s"), 3);
  EXPECT_EQ(Number(record, "read_bytes"), 2000);
  EXPECT_EQ(Number(record, "memory_peak_bytes"), 70);
  EXPECT_EQ(Number(record, "memory_peak_sum_bytes"), 120);
  EXPECT_DOUBLE_EQ(Number(record, "collective_exposed_s"), 0.5);
  EXPECT_DOUBLE_EQ(Number(record, "collective_wait_s"), 0.25);
  const JsonList& classes = *record.Find("collectives")->AsList();
  ASSERT_EQ(classes.size(), 1U);
  EXPECT_EQ(*classes[0].Find("size")->AsString(), "up to 8 KiB");
  EXPECT_EQ(Number(classes[0], "operations"), 3);
  EXPECT_EQ(Number(classes[0], "bytes"), 96);
  EXPECT_EQ(Number(classes[0], "sent_bytes"), 192);
}

// Two ranks on each of three nodes: a node is done when its last rank is.
TEST(ProfileTest, StagingIsToldOfEachNodeTheSlowestFirst) {
  std::vector<ProfileCounts> ranks(6);
  EXPECT_EQ(JsonValue(ProfileRecord({.ranks_per_node = 2}, ranks)).Find("staging"), nullptr);
  for (ProfileCounts& rank : ranks)
    rank = {.staged_bytes = 1000, .staged_s = 2, .staged_file_p99_s = 0.1};
  ranks[3].staged_s = 8;
  ranks[2].staged_file_p99_s = 0.5;
  ranks[2].staged_retries = 1;

  const JsonValue record(ProfileRecord({.ranks_per_node = 2}, ranks));

  EXPECT_EQ(Number(record, "staged_bytes"), 6000);
  const JsonList& nodes = *record.Find("staging")->AsList();
  ASSERT_EQ(nodes.size(), 3U);
  EXPECT_EQ(Number(nodes[0], "node"), 1);
  EXPECT_EQ(Number(nodes[0], "bytes"), 2000);
  EXPECT_DOUBLE_EQ(Number(nodes[0], "bytes_per_s"), 250);
  EXPECT_DOUBLE_EQ(Number(nodes[0], "file_p99_s"), 0.5);
  EXPECT_EQ(Number(nodes[0], "retries"), 1);
  EXPECT_EQ(Number(nodes[1], "node"), 0);
  EXPECT_DOUBLE_EQ(Number(nodes[1], "bytes_per_s"), 1000);
}

TEST(ProfileTest, WhatDevicesSayToEachOtherIsCountedIfTheyDo) {
  std::vector<ProfileCounts> ranks(2);
  EXPECT_EQ(JsonValue(ProfileRecord({}, ranks)).Find("device_averages"), nullptr);
  EXPECT_EQ(JsonValue(ProfileRecord({}, ranks)).Find("device_exchanges"), nullptr);
  for (ProfileCounts& rank : ranks) {
    rank.device_averages = {.averages = 4, .bytes = 1000, .overlapped_bytes = 900};
    rank.device_traffic = {.exchanges = 7, .bytes = 50};
  }
  ranks[1].device_traffic.exchanges = 9;

  const JsonValue record(ProfileRecord({}, ranks));

  EXPECT_EQ(Number(record, "device_averages"), 4);
  EXPECT_EQ(Number(record, "device_average_bytes"), 2000);
  EXPECT_EQ(Number(record, "device_average_overlapped_bytes"), 1800);
  EXPECT_EQ(Number(record, "device_exchanges"), 9);
  EXPECT_EQ(Number(record, "device_exchange_bytes"), 100);
}

// Two ranks that can do 100 GFLOP/s and move 10 GB/s each. 100 GFLOP take them 0.5 s together, and
// 40 GB 2 s: memory is the roof, and in 4 s of training half of it is reached.
TEST(ProfileTest, TheRoofIsWhateverTakesLonger) {
  std::vector<ProfileCounts> ranks(2, {.train_flops = 50e9,
                                       .train_bytes = 20e9,
                                       .eval_bytes = 3e9,
                                       .train_s = 4,
                                       .peak_flops_per_s = 100e9,
                                       .peak_bytes_per_s = 10e9});

  const JsonValue memory_bound(ProfileRecord({}, ranks));
  for (ProfileCounts& rank : ranks)
    rank.train_bytes = 1e9;
  const JsonValue compute_bound(ProfileRecord({}, ranks));

  EXPECT_DOUBLE_EQ(Number(memory_bound, "train_gbyte"), 40);
  EXPECT_DOUBLE_EQ(Number(memory_bound, "eval_gbyte"), 6);
  EXPECT_DOUBLE_EQ(Number(memory_bound, "memory_gbyte_per_s"), 20);
  EXPECT_DOUBLE_EQ(Number(memory_bound, "roofline_s"), 2);
  EXPECT_DOUBLE_EQ(Number(memory_bound, "roofline_share"), 0.5);
  EXPECT_EQ(*memory_bound.Find("roofline_limit")->AsString(), "memory");
  EXPECT_DOUBLE_EQ(Number(compute_bound, "roofline_s"), 0.5);
  EXPECT_DOUBLE_EQ(Number(compute_bound, "roofline_share"), 0.125);
  EXPECT_EQ(*compute_bound.Find("roofline_limit")->AsString(), "arithmetic");
}

// A device whose peak nobody knows: there is no share, and the record says so.
TEST(ProfileTest, WithoutAPeakThereIsNoShare) {
  std::vector<ProfileCounts> ranks(2, {.train_flops = 1e9, .train_s = 1});
  ranks[0].peak_flops_per_s = 1e9;

  const JsonValue record(ProfileRecord({}, ranks));

  EXPECT_EQ(*record.Find("peak_source")->AsString(), "not known");
  EXPECT_EQ(record.Find("peak_share"), nullptr);
  EXPECT_EQ(record.Find("roofline_share"), nullptr);
  EXPECT_EQ(record.Find("peak_gflop_per_s"), nullptr);
}

// Touched pages are resident, and the kernel keeps the largest number of them.
TEST(ProfileTest, TheMemoryPeakStaysWhenMemoryIsGivenBack) {
  constexpr int64_t kBytes = 64 << 20;
  { const std::vector<char> pages(kBytes, 'x'); }

  const int64_t peak = MemoryPeakBytes();
  ForgetMemoryPeak();
  EXPECT_GE(peak, kBytes);
  EXPECT_LE(MemoryPeakBytes(), peak - kBytes / 2);
}

TEST(ProfileTest, ThePeakIsMeasuredByTheClockThatIsPassedIn) {
  FakeClock still;
  const RealClock real;
  Profile unknown(&still), measured(&real);
  ForgetMemoryPeak();
  const int64_t resident = MemoryPeakBytes();

  unknown.ProbePeak();
  measured.ProbePeak();

  EXPECT_EQ(unknown.counts().peak_flops_per_s, 0);
  EXPECT_GT(measured.counts().peak_flops_per_s, 1e8);
  EXPECT_GE(measured.counts().peak_threads, 1);
  EXPECT_EQ(unknown.counts().peak_bytes_per_s, 0);
  EXPECT_GT(measured.counts().peak_bytes_per_s, 1e8);
  EXPECT_LT(MemoryPeakBytes(), resident + (32 << 20)) << "what measuring took counts";
}

class ProfiledRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dataset::CosmoDatasetSpec spec;
    spec.parameters.mode = dataset::CosmoMode::kBeacon;
    spec.train_samples = kTrainSamples;
    spec.validation_samples = kEvalSamples;
    ASSERT_THAT(dataset::GenerateCosmoDataset(dir_.Path("data"), spec, /*threads=*/2), IsOk());
  }

  v1::RunSpec Run(const std::string& log_name) const {
    v1::RunSpec run = testing::SmallRun();
    run.set_log_path(dir_.Path(log_name));
    run.set_quality_target(1e-9);
    testing::SetHyperparameter(&run, "base_filter_count", "32");
    run.mutable_dataset()->set_path(dir_.Path("data"));
    run.mutable_dataset()->set_train_sample_count(kTrainSamples);
    run.mutable_dataset()->set_eval_sample_count(kEvalSamples);
    return run;
  }

  void Train(const v1::RunSpec& run, const Clock& clock) {
    const absl::StatusOr<TrainerSpec> spec = MakeTrainerSpec(run);
    ASSERT_THAT(spec, IsOk());
    TrainingLoop loop(*spec, &clock, &stop_);
    ASSERT_THAT(loop.Run(), IsOk());
  }

  std::vector<JsonValue> Profiles() const {
    std::vector<JsonValue> profiles;
    const std::string text = ReadFile(dir_.Path("progress")).value_or("");
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      const JsonResult record = ParseJson(line);
      EXPECT_EQ(record.error, JsonError::kNone) << line;
      const JsonValue* profile = record.value.Find("profile");
      if (profile != nullptr) profiles.push_back(*profile);
    }
    return profiles;
  }

  static constexpr int kTrainSamples = 8;
  static constexpr int kEvalSamples = 4;
  TempDir dir_;
  std::atomic<bool> stop_{false};
};

// One record for each epoch but the last, which comes after run_stop.
TEST_F(ProfiledRunTest, EachEpochAddsToTheFigures) {
  v1::RunSpec run = Run("result");
  run.set_progress_path(dir_.Path("progress"));
  Train(run, RealClock());

  const std::vector<JsonValue> profiles = Profiles();
  ASSERT_EQ(profiles.size(), 2U);
  for (size_t i = 0; i < profiles.size(); ++i) {
    const double epochs = static_cast<double>(i + 1);
    EXPECT_EQ(Number(profiles[i], "epoch"), epochs);
    EXPECT_EQ(profiles[i].Find("is_final")->AsBool(), i == 1);
    EXPECT_EQ(Number(profiles[i], "train_samples"), kTrainSamples * epochs);
    // 3.0015 and 1.076 GFLOP a sample (flops_test.cc).
    EXPECT_NEAR(Number(profiles[i], "train_gflop"), 3.0015 * kTrainSamples * epochs, 0.01);
    EXPECT_NEAR(Number(profiles[i], "eval_gflop"), 1.076 * kEvalSamples * epochs, 0.01);
    EXPECT_GT(Number(profiles[i], "train_s"), 0);
    EXPECT_LE(Number(profiles[i], "input_wait_s"),
              Number(profiles[i], "train_s") + Number(profiles[i], "eval_s"));
    // A sample has 4 channels of 32^3 numbers of two bytes, and little beside them.
    const double bytes = 2.0 * 4 * 32 * 32 * 32 * (kTrainSamples + kEvalSamples);
    EXPECT_GE(Number(profiles[i], "read_bytes"), bytes * epochs);
    EXPECT_LE(Number(profiles[i], "read_bytes"), 1.1 * bytes * 2);
    EXPECT_GT(Number(profiles[i], "memory_peak_bytes"), 4 * 4'778'788);  // the parameters alone
  }
}

TEST_F(ProfiledRunTest, TheLogHasTheSameBytesWithAndWithoutRecords) {
  v1::RunSpec with = Run("with");
  with.set_progress_path(dir_.Path("progress"));
  Train(with, FakeClock());
  Train(Run("without"), FakeClock());

  const std::string log = ReadFile(dir_.Path("with")).value_or("");
  EXPECT_EQ(log, ReadFile(dir_.Path("without")).value_or(""));
  EXPECT_TRUE(absl::StrContains(log, "run_stop"));
  EXPECT_FALSE(absl::StrContains(log, "profile"));
  EXPECT_EQ(Profiles().size(), 2U);
}

}  // namespace
}  // namespace assay
