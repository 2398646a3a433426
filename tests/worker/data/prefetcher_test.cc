#include "worker/data/prefetcher.h"

#include <algorithm>
#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/dataset/example.h"
#include "common/file.h"
#include "common/random.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"
#include "worker/data/cache_plan.h"

namespace assay::data {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using ::assay::testing::WriteFile;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr int kCubeEdge = 2;
constexpr int kSampleCount = 24;

// 24 tiny samples: all counts of sample i are i, and its targets are i, i + 0.25, ...
class PrefetcherTest : public ::testing::TestWithParam<int> {
 protected:
  void WriteSamples(dataset::Compression compression) {
    compression_ = compression;
    for (int i = 0; i < kSampleCount; ++i) {
      const std::vector<int16_t> counts(static_cast<size_t>(dataset::CosmoValues(kCubeEdge)),
                                        static_cast<int16_t>(i));
      const float y = static_cast<float>(i);
      std::string bytes = dataset::FrameRecord(
          dataset::EncodeCosmoSample(counts, {y, y + 0.25F, y + 0.5F, y + 0.75F}));
      if (compression == dataset::Compression::kGzip) bytes = dataset::Gzip(bytes);
      WriteFile(Path(static_cast<uint32_t>(i)), bytes);
    }
  }

  std::string Path(uint32_t sample) const { return dir_.Path(absl::StrCat(sample, ".tfrecord")); }

  // A different order for every epoch.
  static std::vector<uint32_t> Order(int epoch) {
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < kSampleCount; ++i)
      order.push_back(i);
    Shuffle(Stream(1, Purpose::kTest, 0, static_cast<uint32_t>(epoch)), order);
    return order;
  }

  std::unique_ptr<Prefetcher> Make() {
    return Prefetcher::Create(options_, CosmoflowFormat(kCubeEdge, compression_),
                              [this, cache = CachePlan(10, slots_)](int epoch) mutable {
                                ++order_calls_;
                                std::vector<SampleToRead> samples;
                                for (const uint32_t i : Order(epoch))
                                  samples.push_back({.path = Path(i), .cache = cache.Next(i)});
                                return samples;
                              })
        .value();
  }

  // Takes a batch and expects it to hold these samples.
  void ExpectBatch(Prefetcher* prefetcher, const uint32_t* samples) const {
    const absl::StatusOr<const Batch*> batch = prefetcher->Next();
    ASSERT_THAT(batch, IsOk());
    ASSERT_EQ((*batch)->size, options_.batch_size);
    const size_t values = static_cast<size_t>(dataset::CosmoValues(kCubeEdge));
    for (size_t b = 0; b < static_cast<size_t>(options_.batch_size); ++b) {
      const std::vector<int16_t> voxels(
          (*batch)->Input<int16_t>().begin() + static_cast<ptrdiff_t>(b * values),
          (*batch)->Input<int16_t>().begin() + static_cast<ptrdiff_t>((b + 1) * values));
      EXPECT_THAT(voxels, Each(static_cast<int16_t>(samples[b])));
      EXPECT_EQ((*batch)->Targets<float>()[4 * b + 3], static_cast<float>(samples[b]) + 0.75F);
    }
  }

  void ExpectEpoch(Prefetcher* prefetcher, int epoch) const {
    const std::vector<uint32_t> order = Order(epoch);
    for (size_t i = 0; i < order.size(); i += static_cast<size_t>(options_.batch_size))
      ExpectBatch(prefetcher, &order[i]);
  }

  const TempDir dir_;
  PrefetchOptions options_ = {.batch_size = 3, .threads = GetParam(), .depth = 3, .epochs = 1};
  dataset::Compression compression_ = dataset::Compression::kNone;
  int64_t slots_ = 0;  // of a device's cache
  std::atomic<int> order_calls_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Threads, PrefetcherTest, ::testing::Values(1, 4, 16));

TEST_P(PrefetcherTest, DeliversTheOrderAskedFor) {
  for (const dataset::Compression compression :
       {dataset::Compression::kNone, dataset::Compression::kGzip}) {
    WriteSamples(compression);
    options_.first_epoch = 5;
    options_.epochs = 3;
    const std::unique_ptr<Prefetcher> prefetcher = Make();
    prefetcher->Start();

    for (int epoch = 5; epoch < 8; ++epoch)
      ExpectEpoch(prefetcher.get(), epoch);
    EXPECT_THAT(prefetcher->Next(), StatusIs(absl::StatusCode::kOutOfRange));
    EXPECT_THAT(prefetcher->Next(), StatusIs(absl::StatusCode::kOutOfRange));
  }
}

// One file, wanted as it is and flipped along W: the two voxels of each row change places.
TEST_P(PrefetcherTest, TurnsSamplesAsAskedFor) {
  std::vector<int16_t> counts(static_cast<size_t>(dataset::CosmoValues(kCubeEdge)));
  for (size_t i = 0; i < counts.size(); ++i)
    counts[i] = static_cast<int16_t>(i);
  WriteFile(Path(0), dataset::FrameRecord(dataset::EncodeCosmoSample(counts, {1, 2, 3, 4})));
  constexpr int kFlipW = 4;
  const auto order = [this](int) {
    return std::vector<SampleToRead>{{.path = Path(0)}, {.path = Path(0), .symmetry = kFlipW}};
  };
  options_.batch_size = 2;
  const auto prefetcher =
      Prefetcher::Create(options_, CosmoflowFormat(kCubeEdge, dataset::Compression::kNone), order);
  ASSERT_THAT(prefetcher, IsOk());
  (*prefetcher)->Start();

  const absl::StatusOr<const Batch*> batch = (*prefetcher)->Next();

  ASSERT_THAT(batch, IsOk());
  const std::span<const int16_t> read = (*batch)->Input<int16_t>();
  for (size_t i = 0; i < counts.size(); ++i) {
    const size_t in_row = i % 8, neighbour = in_row < 4 ? i + 4 : i - 4;
    EXPECT_EQ(read[i], counts[i]);
    EXPECT_EQ(read[counts.size() + i], counts[neighbour]);
  }
}

// The clock starts at the first touch: nothing may be read, or even asked for, before Start.
TEST_P(PrefetcherTest, TouchesNothingBeforeStart) {
  const std::unique_ptr<Prefetcher> prefetcher = Make();

  EXPECT_THAT(prefetcher->Next(), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(order_calls_, 0);
  EXPECT_EQ(prefetcher->stored_bytes(), 0);
}

TEST_P(PrefetcherTest, NeverReadsMoreThanTheDepthAhead) {
  WriteSamples(dataset::Compression::kNone);
  options_.epochs = 4;
  const int64_t batch_bytes = 3 * FileSize(Path(0)).value();
  const std::unique_ptr<Prefetcher> prefetcher = Make();
  prefetcher->Start();

  for (int64_t taken = 1; taken <= 4 * kSampleCount / 3; ++taken) {
    ASSERT_THAT(prefetcher->Next(), IsOk());
    EXPECT_LE(prefetcher->stored_bytes(), (taken - 1 + options_.depth) * batch_bytes);
    EXPECT_GE(prefetcher->stored_bytes(), taken * batch_bytes);
  }
}

TEST_P(PrefetcherTest, ABatchStaysUntilTheNextIsAskedFor) {
  WriteSamples(dataset::Compression::kNone);
  options_.batch_size = 1;
  options_.depth = 2;
  const std::unique_ptr<Prefetcher> prefetcher = Make();
  prefetcher->Start();
  const std::vector<uint32_t> order = Order(0);

  for (const uint32_t sample : order) {
    const absl::StatusOr<const Batch*> batch = prefetcher->Next();
    ASSERT_THAT(batch, IsOk());
    for (int i = 0; i < 100; ++i)
      ASSERT_THAT((*batch)->Input<int16_t>(), Each(static_cast<int16_t>(sample)));
  }
}

TEST_P(PrefetcherTest, PeekShowsWhatNextWillDeliver) {
  WriteSamples(dataset::Compression::kNone);
  options_.depth = 2;
  slots_ = 2;
  const std::unique_ptr<Prefetcher> prefetcher = Make();
  EXPECT_EQ(prefetcher->Peek(), nullptr);
  prefetcher->Start();
  const std::vector<uint32_t> order = Order(0);

  for (size_t i = 0; i < kSampleCount; i += 3) {
    const Batch* peeked = prefetcher->Peek();
    while (peeked == nullptr)
      peeked = prefetcher->Peek();
    EXPECT_EQ(prefetcher->Peek(), peeked);
    EXPECT_EQ(peeked->Targets<float>()[4], static_cast<float>(order[i + 1]));
    const absl::StatusOr<const Batch*> delivered = prefetcher->Next();
    ASSERT_THAT(delivered, IsOk());
    EXPECT_EQ(*delivered, peeked);
    EXPECT_NE(prefetcher->Peek(), *delivered);
    EXPECT_EQ((*delivered)->Targets<float>()[0], static_cast<float>(order[i]));
  }
  EXPECT_EQ(prefetcher->Peek(), nullptr);
}

TEST_P(PrefetcherTest, PeekShowsNoBatchThatWillFail) {
  const std::unique_ptr<Prefetcher> prefetcher = Make();  // without files
  prefetcher->Start();

  EXPECT_THAT(prefetcher->Next(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(prefetcher->Peek(), nullptr);
}

// The files of the first epoch's samples are gone in the second, in which only targets and places
// of samples that the device keeps are delivered.
TEST_P(PrefetcherTest, WhatADeviceKeepsIsNotReadAgain) {
  WriteSamples(dataset::Compression::kNone);
  options_.epochs = 3;
  slots_ = kSampleCount;
  const std::unique_ptr<Prefetcher> prefetcher = Make();
  prefetcher->Start();
  ExpectEpoch(prefetcher.get(), 0);
  const int64_t read = prefetcher->stored_bytes();
  for (uint32_t i = 0; i < kSampleCount; ++i)
    ASSERT_THAT(RemoveTree(Path(i)), IsOk());

  for (int epoch = 1; epoch < 3; ++epoch) {
    const std::vector<uint32_t> first = Order(0), order = Order(epoch);
    for (size_t i = 0; i < order.size(); i += 3) {
      const absl::StatusOr<const Batch*> batch = prefetcher->Next();
      ASSERT_THAT(batch, IsOk());
      for (size_t b = 0; b < 3; ++b) {
        const auto place = std::find(first.begin(), first.end(), order[i + b]) - first.begin();
        EXPECT_EQ((*batch)->cache[b], (CachePlace{.slot = 10 + place, .is_there = true}));
        EXPECT_EQ((*batch)->Targets<float>()[4 * b + 1], static_cast<float>(order[i + b]) + 0.25F);
      }
    }
  }
  EXPECT_EQ(prefetcher->stored_bytes(), read);
}

TEST_P(PrefetcherTest, WhatADeviceHasNoRoomForIsReadInEveryEpoch) {
  WriteSamples(dataset::Compression::kNone);
  options_.epochs = 2;
  slots_ = 5;
  const std::unique_ptr<Prefetcher> prefetcher = Make();
  prefetcher->Start();
  for (int64_t batch = 0; batch < 2 * kSampleCount / 3; ++batch)
    ASSERT_THAT(prefetcher->Next(), IsOk());

  EXPECT_EQ(prefetcher->stored_bytes(), (2 * kSampleCount - 5) * FileSize(Path(0)).value());
}

TEST_P(PrefetcherTest, DeliversWhatComesBeforeABadSampleAndThenTheError) {
  WriteSamples(dataset::Compression::kNone);
  const std::vector<uint32_t> order = Order(0);
  const std::string bad = Path(order[10]);
  WriteFile(bad, ReadFile(bad).value().substr(0, 40));
  const std::unique_ptr<Prefetcher> prefetcher = Make();
  prefetcher->Start();

  for (size_t i = 0; i < 9; i += 3)
    ExpectBatch(prefetcher.get(), &order[i]);
  for (int again = 0; again < 2; ++again)
    EXPECT_THAT(prefetcher->Next(), StatusIs(absl::StatusCode::kDataLoss,
                                             AllOf(HasSubstr(bad), HasSubstr("cut short"))));
}

TEST_P(PrefetcherTest, AMissingFileIsNamed) {
  WriteSamples(dataset::Compression::kNone);
  ASSERT_THAT(RemoveTree(Path(Order(0)[0])), IsOk());
  const std::unique_ptr<Prefetcher> prefetcher = Make();
  prefetcher->Start();

  EXPECT_THAT(prefetcher->Next(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(Path(Order(0)[0]))));
}

TEST_P(PrefetcherTest, RefusesAnEpochThatDoesNotDivide) {
  WriteSamples(dataset::Compression::kNone);
  options_.batch_size = 5;
  const std::unique_ptr<Prefetcher> prefetcher = Make();
  prefetcher->Start();

  EXPECT_THAT(prefetcher->Next(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("24 samples")));
}

TEST_P(PrefetcherTest, StopsInTheMiddle) {
  WriteSamples(dataset::Compression::kNone);
  for (int taken = 0; taken < 5; ++taken) {
    const std::unique_ptr<Prefetcher> prefetcher = Make();
    prefetcher->Start();
    for (int i = 0; i < taken; ++i)
      ASSERT_THAT(prefetcher->Next(), IsOk());
  }
}

TEST(PrefetchOptionsTest, AreChecked) {
  const auto create = [](const PrefetchOptions& options) {
    return Prefetcher::Create(options, CosmoflowFormat(kCubeEdge, dataset::Compression::kNone),
                              [](int) { return std::vector<SampleToRead>(); })
        .status();
  };

  EXPECT_THAT(create({}), IsOk());
  EXPECT_THAT(create({.batch_size = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("batch_size")));
  EXPECT_THAT(create({.threads = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("threads")));
  EXPECT_THAT(create({.depth = 1}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("depth")));
}

}  // namespace
}  // namespace assay::data
