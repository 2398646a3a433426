#include "worker/engine/gradient_buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kMib = int64_t{1} << 20;

// From the first element of a range on, how many.
using Range = std::pair<int64_t, int64_t>;

// Writes down what it is asked to average.
class RecordingAverage : public RankAverage {
 public:
  explicit RecordingAverage(const float* flat) : flat_(flat) {}

  absl::StatusOr<std::string> MakeId() override { return std::string(); }
  absl::Status Join(const RanksToJoin&) override { return absl::OkStatus(); }
  bool has_joined() const override { return true; }
  void Average(const Tensor&, RankScope) override { ADD_FAILURE() << "not asked for"; }
  void Start(const Tensor& values) override {
    started_.emplace_back(static_cast<const float*>(values.data) - flat_, values.elements());
  }
  void Finish() override { ++finished_; }
  void Exchange(std::span<const RankTransfer>) override { ADD_FAILURE() << "not asked for"; }

  std::vector<Range> Take() { return std::exchange(started_, {}); }
  int finished() const { return finished_; }

 private:
  const float* const flat_;
  std::vector<Range> started_;
  int finished_ = 0;
};

// Layers of so many parameters each; their gradients are never touched.
class GradientBucketsTest : public ::testing::Test {
 protected:
  using Layers = std::vector<std::vector<int64_t>>;

  void SetUpLayers(const Layers& layers, int64_t bytes) {
    int64_t elements = 0;
    size_t count = 0;
    for (const std::vector<int64_t>& layer : layers)
      count += layer.size();
    parameters_.reserve(count);
    for (const std::vector<int64_t>& layer : layers) {
      layers_.emplace_back();
      for (const int64_t size : layer) {
        parameters_.push_back({.name = "p" + std::to_string(parameters_.size()), .shape = {size}});
        layers_.back().push_back(&parameters_.back());
        all_.push_back(&parameters_.back());
        elements += size;
      }
    }
    buckets_ = std::make_unique<GradientBuckets>(
        &average_, all_, Tensor{&first_, Shape{elements}, DType::kFloat32}, bytes);
  }

  // Backward through these layers, in this order.
  void Run(const std::vector<size_t>& order) {
    buckets_->Begin();
    for (const size_t layer : order)
      buckets_->Final(layers_[layer]);
    buckets_->Finish();
  }

  float first_ = 0;
  RecordingAverage average_{&first_};
  std::vector<Parameter> parameters_;
  std::vector<std::vector<Parameter*>> layers_;
  std::vector<Parameter*> all_;
  std::unique_ptr<GradientBuckets> buckets_;
};

TEST_F(GradientBucketsTest, WholeLayersFromTheEndOnMakeABucketOnceTheyAreLargeEnough) {
  SetUpLayers({{10, 1}, {20, 2}, {30, 3}, {40, 4}}, 60 * sizeof(float));

  Run({3, 2, 1, 0});

  // Layer 3 has 44 elements, with layer 2 there are 77; 22 and 11 are left.
  EXPECT_THAT(average_.Take(), ElementsAre(Range(33, 77), Range(0, 33)));
  EXPECT_EQ(average_.finished(), 1);
  EXPECT_EQ(buckets_->counts().averages, 2);
  EXPECT_EQ(buckets_->counts().bytes, 110 * 4);
  EXPECT_EQ(buckets_->counts().overlapped_bytes, 77 * 4);
}

TEST_F(GradientBucketsTest, TheLastBucketOverlapsNothingEvenIfItIsLarge) {
  SetUpLayers({{100}, {1}}, 4);

  Run({1, 0});

  EXPECT_THAT(average_.Take(), ElementsAre(Range(100, 1), Range(0, 100)));
  EXPECT_EQ(buckets_->counts().overlapped_bytes, 4);
}

// Backward goes through branches one after the other, each from its end.
TEST_F(GradientBucketsTest, BranchesAreAveragedWithoutWaitingForEachOther) {
  SetUpLayers({{5}, {50}, {50}, {7}, {50}}, 90 * sizeof(float));

  // Layers 1 and 2 are one branch, 3 another.
  Run({4, 2, 1, 3, 0});

  EXPECT_THAT(average_.Take(), ElementsAre(Range(5, 100), Range(105, 57), Range(0, 5)));
}

TEST_F(GradientBucketsTest, APartThatIsToldOfTwiceIsAveragedOnce) {
  SetUpLayers({{10}, {10}}, 4);
  buckets_->Begin();
  buckets_->Final(layers_[1]);
  buckets_->Final(all_);  // as a layer made of both
  buckets_->Finish();

  EXPECT_THAT(average_.Take(), ElementsAre(Range(10, 10), Range(0, 10)));
}

TEST_F(GradientBucketsTest, FrozenParametersTakeNoPart) {
  SetUpLayers({{10, 1}, {20, 2}, {30, 3}}, kMib);
  Run({2, 1, 0});
  EXPECT_THAT(average_.Take(), ElementsAre(Range(0, 66)));

  for (Parameter* parameter : layers_[0])
    parameter->is_frozen = true;
  Run({2, 1});
  EXPECT_THAT(average_.Take(), ElementsAre(Range(11, 55)));

  // A layer that is told of because something before it is trained.
  Run({2, 1, 0});
  EXPECT_THAT(average_.Take(), ElementsAre(Range(11, 55)));
}

TEST_F(GradientBucketsTest, NothingIsAveragedTwiceInTheNextStep) {
  SetUpLayers({{10}}, 4);
  Run({0});
  Run({0});

  EXPECT_THAT(average_.Take(), ElementsAre(Range(0, 10), Range(0, 10)));
  EXPECT_THAT(average_.Take(), IsEmpty());
}

// Layers of CosmoFlow for cubes of 128, kernels before biases.
std::vector<std::vector<int64_t>> CosmoflowLayers(int64_t taps) {
  return {{4 * 32 * taps, 32},     {32 * 64 * taps, 64},
          {64 * 128 * taps, 128},  {128 * 256 * taps, 256},
          {256 * 512 * taps, 512}, {32768 * 128, 128},
          {128 * 64, 64},          {64 * 4, 4}};
}

// What the default is chosen for: the first layers take most of the time and have the least
// gradients, so nearly all is on its way before they are done.
TEST_F(GradientBucketsTest, TheDefaultLeavesLittleOfCosmoflowForTheEnd) {
  SetUpLayers(CosmoflowLayers(27), kGradientBucketMib * kMib);
  Run({7, 6, 5, 4, 3, 2, 1, 0});

  EXPECT_EQ(average_.Take().size(), 4U);
  const AverageCounts& counts = buckets_->counts();
  EXPECT_LT(counts.bytes - counts.overlapped_bytes, kMib / 4);
}

TEST_F(GradientBucketsTest, TheDefaultCutsTheFirstRoundsCosmoflowToo) {
  SetUpLayers(CosmoflowLayers(8), kGradientBucketMib * kMib);
  Run({7, 6, 5, 4, 3, 2, 1, 0});

  EXPECT_EQ(average_.Take().size(), 3U);
  const AverageCounts& counts = buckets_->counts();
  EXPECT_LT(counts.bytes - counts.overlapped_bytes, 2 * kMib);
}

}  // namespace
}  // namespace assay
