// How batches reach the CUDA backend: prefetched while a step computes, or kept on the device. On a
// fake whose streams are as late as they may be, results are those of plain copies, bit by bit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/random.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/engine/cuda/host_device.h"
#include "tests/worker/engine/make_batch.h"
#include "worker/engine/backends/cuda/cuda_backend.h"
#include "worker/engine/backends/reference/reference_backend.h"
#include "worker/engine/backends/registry.h"
#include "worker/engine/trainable.h"
#include "worker/models/registry.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

constexpr size_t kInputBatchSize = 2;
constexpr size_t kVoxels = size_t{32} * 32 * 32 * kCosmoflowChannels;

ModelSpec Spec() {
  return {.name = "cosmoflow",
          .cosmoflow = {.batch = kInputBatchSize, .cube_edge = 32, .kernel = 2, .base_filters = 1},
          .options = {.seed = 42, .reduction = {.is_alone = true}}};
}

// A batch in the memory of a reader.
struct InputBatch {
  std::vector<int16_t> input;
  std::vector<float> targets;
  std::vector<CachePlace> cache;

  Batch view() const {
    Batch batch = MakeBatch(input, targets);
    batch.cache = cache;
    return batch;
  }
};

// Four samples, and what a reader makes of them that knows which ones the device keeps.
class Reader {
 public:
  explicit Reader(int64_t slots) : slots_(slots) {}

  InputBatch Read(const std::vector<uint32_t>& samples) {
    InputBatch batch;
    for (const uint32_t sample : samples) {
      const CachePlace place = PlaceOf(sample);
      const Stream stream(5, Purpose::kTest, sample);
      for (size_t i = 0; i < kVoxels; ++i)
        batch.input.push_back(place.is_there ? int16_t{-7}
                                             : static_cast<int16_t>(stream.Below(i, 5)));
      for (size_t i = 0; i < kCosmoflowOutputs; ++i)
        batch.targets.push_back(stream.Uniform(kVoxels + i) - 0.5F);
      batch.cache.push_back(place);
    }
    return batch;
  }

 private:
  CachePlace PlaceOf(uint32_t sample) {
    const auto found = slot_of_.find(sample);
    if (found != slot_of_.end()) return {.slot = found->second, .is_there = true};
    const auto slot = static_cast<int64_t>(slot_of_.size());
    if (slot == slots_) return {};
    slot_of_[sample] = slot;
    return {.slot = slot};
  }

  const int64_t slots_;
  std::map<uint32_t, int64_t> slot_of_;
};

struct InputCase {
  const char* name;
  bool tells_next = true;
  bool calls_late = false, copies_late = false;
  bool refuses = false;
  int64_t slots = 0;
};

struct InputOutcome {
  std::vector<float> numbers;  // losses, predictions, parameters
  int copies_in = 0, async_copies = 0;
  int64_t cached = 0;
};

void Append(std::span<const float> from, InputOutcome* outcome) {
  outcome->numbers.insert(outcome->numbers.end(), from.begin(), from.end());
}

// What a reader delivers in an epoch. The last batch of an evaluation is short.
struct Epoch {
  std::vector<InputBatch> training, evaluation;
};

// Two epochs, in different orders.
std::vector<Epoch> ReadEpochs(int64_t slots) {
  Reader reader(slots);
  std::vector<Epoch> epochs(2);
  const std::vector<std::vector<uint32_t>> orders[] = {{{0, 1}, {2, 3}}, {{3, 0}, {1, 2}}};
  for (size_t i = 0; i < epochs.size(); ++i) {
    for (const auto& samples : orders[i])
      epochs[i].training.push_back(reader.Read(samples));
    for (const auto& samples : std::vector<std::vector<uint32_t>>{{2, 1}, {0}})
      epochs[i].evaluation.push_back(reader.Read(samples));
  }
  return epochs;
}

void TrainStep(Trainable* model, const InputBatch& batch, const InputBatch* next,
               InputOutcome* outcome) {
  const Batch next_view = next == nullptr ? Batch() : next->view();
  const auto loss = model->TrainStep(
      batch.view(), {}, 0.01, [](std::span<float>) { return absl::OkStatus(); },
      next == nullptr ? nullptr : &next_view);
  EXPECT_THAT(loss, IsOk());
  outcome->numbers.push_back(loss.value_or(0));
}

void Evaluate(Trainable* model, const InputBatch& batch, const InputBatch* next,
              InputOutcome* outcome) {
  const Batch next_view = next == nullptr ? Batch() : next->view();
  const auto sums = model->EvalBatch(batch.view(), next == nullptr ? nullptr : &next_view);
  EXPECT_THAT(sums, IsOk());
  outcome->numbers.push_back(static_cast<float>(sums.value_or(EvalSums()).loss));
  Append(model->predictions().first(kCosmoflowOutputs), outcome);
}

// `watched`: what counts the copies of batches, if the device is the fake.
InputOutcome Train(const InputCase& c, std::unique_ptr<Backend> backend,
                   const cuda::HostDevice* watched) {
  std::vector<Epoch> epochs = ReadEpochs(c.slots);
  auto made = MakeTrainable(Spec(), std::move(backend));
  EXPECT_THAT(made, IsOk());
  Trainable* const model = made->get();
  if (c.slots > 0) {
    EXPECT_THAT(model->ReserveCache(c.slots), IsOk());
  }
  std::vector<std::shared_ptr<void>> pins;  // as the trainer does
  for (Epoch& epoch : epochs)
    for (InputBatch& batch : epoch.training)
      pins.push_back(model->Pin(std::as_writable_bytes(std::span(batch.input))));
  const int copies_before = watched == nullptr ? 0 : watched->copies_in();
  InputOutcome outcome;
  for (size_t i = 0; i < epochs.size(); ++i) {
    const std::vector<InputBatch>& training = epochs[i].training;
    const InputBatch* const after = i + 1 < epochs.size() ? &epochs[i + 1].training[0] : nullptr;
    TrainStep(model, training[0], c.tells_next ? &training[1] : nullptr, &outcome);
    TrainStep(model, training[1], c.tells_next ? after : nullptr, &outcome);
    const std::vector<InputBatch>& evaluation = epochs[i].evaluation;
    Evaluate(model, evaluation[0], c.tells_next ? &evaluation[1] : nullptr, &outcome);
    Evaluate(model, evaluation[1], nullptr, &outcome);
  }
  Append(model->parameters(), &outcome);
  outcome.cached = model->cached_samples();
  if (watched != nullptr) {
    outcome.copies_in = watched->copies_in() - copies_before;
    outcome.async_copies = watched->async_copies();
  }
  return outcome;
}

InputOutcome Train(const InputCase& c) {
  auto device = std::make_unique<cuda::HostDevice>();
  const cuda::HostDevice* const watched = device.get();
  device->set_late(c.calls_late, c.copies_late);
  device->set_refuses_async_copies(c.refuses);
  auto backend = cuda::CudaBackend::Make(std::move(device), {});
  EXPECT_THAT(backend, IsOk());
  return Train(c, *std::move(backend), watched);
}

void PrintTo(const InputCase& c, std::ostream* out) {
  *out << c.name;
}

class CudaInputTest : public ::testing::TestWithParam<InputCase> {};

TEST_P(CudaInputTest, GivesTheBitsOfPlainCopies) {
  static const InputOutcome expected = Train({.name = "Plain", .tells_next = false});

  const InputOutcome actual = Train(GetParam());

  EXPECT_TRUE(actual.numbers == expected.numbers);
  EXPECT_EQ(expected.copies_in, 16);  // eight batches, each with targets
  EXPECT_EQ(expected.async_copies, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Timings, CudaInputTest,
    ::testing::Values(InputCase{.name = "AtOnce"},
                      InputCase{.name = "CallsLate", .calls_late = true},
                      InputCase{.name = "CopiesLate", .copies_late = true},
                      InputCase{.name = "BothLate", .calls_late = true, .copies_late = true},
                      InputCase{.name = "Refused", .refuses = true},
                      InputCase{.name = "AllKept", .calls_late = true, .slots = 4},
                      InputCase{.name = "SomeKept", .copies_late = true, .slots = 2},
                      InputCase{.name = "KeptWithoutPrefetch", .tells_next = false, .slots = 3}),
    [](const auto& test) { return std::string(test.param.name); });

// What a GPU makes of the orders by events: the same bits, whatever is copied when.
TEST(CudaInputGpuTest, OnAGpuItGivesTheBitsOfPlainCopies) {
  std::vector<std::vector<float>> numbers;
  for (const InputCase& c :
       {InputCase{.name = "Plain", .tells_next = false}, InputCase{.name = "Prefetched"},
        InputCase{.name = "AllKept", .slots = 4}, InputCase{.name = "SomeKept", .slots = 2}}) {
    auto backend = MakeBackend("cuda");
    if (absl::IsUnavailable(backend.status())) GTEST_SKIP() << backend.status();
    ASSERT_THAT(backend, IsOk());
    numbers.push_back(Train(c, *std::move(backend), nullptr).numbers);
    EXPECT_TRUE(numbers.back() == numbers.front()) << c.name;
  }
}

TEST(CudaInputCountTest, ABatchIsCopiedOnceAndAKeptSampleNeverAgain) {
  const InputOutcome prefetched = Train({.name = "Prefetched"});
  EXPECT_EQ(prefetched.copies_in, 2 * 3);  // the first of training, the first of each evaluation
  EXPECT_EQ(prefetched.async_copies, 2 * 5);
  EXPECT_EQ(prefetched.cached, 0);

  const InputOutcome kept = Train({.name = "Kept", .slots = 4});
  EXPECT_EQ(kept.copies_in, 2);     // samples 0 and 1
  EXPECT_EQ(kept.async_copies, 2);  // samples 2 and 3
  EXPECT_EQ(kept.cached, 10);       // training's second epoch, and all six that were evaluated
}

TEST(CudaInputFaultTest, ARefusedPrefetchIsTriedOnceAndCopiedInstead) {
  const InputOutcome refused = Train({.name = "Refused", .refuses = true});
  EXPECT_EQ(refused.async_copies, 0);
  EXPECT_EQ(refused.copies_in, 16);
}

std::unique_ptr<Trainable> Make(cuda::HostDevice** device) {
  auto made = std::make_unique<cuda::HostDevice>();
  *device = made.get();
  auto backend = cuda::CudaBackend::Make(std::move(made), {});
  EXPECT_THAT(backend, IsOk());
  auto model = MakeTrainable(Spec(), *std::move(backend));
  EXPECT_THAT(model, IsOk());
  return *std::move(model);
}

// Another batch than the one announced comes: it is the one that counts.
TEST(CudaInputFaultTest, WhatWasPrefetchedInVainIsForgotten) {
  const auto keep = [](std::span<float>) { return absl::OkStatus(); };
  Reader reader(0);
  const InputBatch first = reader.Read({0, 1}), second = reader.Read({2, 3});
  const InputBatch vain = reader.Read({3, 3});
  const Batch vain_view = vain.view();
  std::vector<float> losses[2];
  for (const bool announces : {false, true}) {
    cuda::HostDevice* device = nullptr;
    const auto model = Make(&device);
    device->set_late(/*calls=*/true, /*copies=*/true);
    for (const InputBatch* batch : {&first, &second, &first}) {
      const auto loss =
          model->TrainStep(batch->view(), {}, 0.01, keep, announces ? &vain_view : nullptr);
      ASSERT_THAT(loss, IsOk());
      losses[announces ? 1 : 0].push_back(*loss);
    }
  }
  EXPECT_EQ(losses[0], losses[1]);
}

TEST(CudaInputPinTest, LargeMemoryIsPinnedForAsLongAsAsked) {
  cuda::HostDevice* device = nullptr;
  const auto model = Make(&device);
  std::vector<std::byte> large(size_t{1} << 20), small(16);

  std::shared_ptr<void> pin = model->Pin(large);
  EXPECT_NE(pin, nullptr);
  EXPECT_EQ(model->Pin(small), nullptr);
  EXPECT_EQ(device->pins(), 1U);
  pin.reset();
  EXPECT_EQ(device->pins(), 0U);

  device->set_refuses_pins(true);
  EXPECT_EQ(model->Pin(large), nullptr);
}

TEST(CudaInputCacheTest, TheHostsMemoryNeedsNoCache) {
  auto model = MakeTrainable(Spec(), std::make_unique<ReferenceBackend<float>>());
  ASSERT_THAT(model, IsOk());

  EXPECT_THAT((*model)->ReserveCache(1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("reference")));
  std::vector<std::byte> memory(size_t{1} << 20);
  EXPECT_EQ((*model)->Pin(memory), nullptr);
}

}  // namespace
}  // namespace assay
