// What every Device must do for ranks that joined: run by the tests on the fake and on GPUs.

#ifndef TESTS_WORKER_ENGINE_CUDA_DEVICE_RANKS_CONFORMANCE_H_
#define TESTS_WORKER_ENGINE_CUDA_DEVICE_RANKS_CONFORMANCE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "worker/engine/backends/cuda/device.h"

namespace assay::cuda {

// Opens the device of a rank; called on the thread that then uses it.
using OpenRankDevice = std::function<std::unique_ptr<Device>(int rank)>;

// One rank of the run below, with its vectors in the device's memory.
class ConformingRank {
 public:
  static constexpr int64_t kCount = 100'000;  // more than NCCL sends in one piece

  ConformingRank(Device* device, const JoinOptions& join) : device_(device), join_(join) {
    gradients_ = Vector([&](int64_t i) { return static_cast<float>(join.rank + i % 7); });
    others_ = Vector([](int64_t i) { return static_cast<float>(i % 5); });
    two_ = Vector([](int64_t) { return 2; });
    half_ = Vector([](int64_t) { return 0.5F; });
    moments_ = Vector([&](int64_t) { return static_cast<float>(join.rank); });
    sent_ = Vector([&](int64_t) { return static_cast<float>(10 * join.rank); });
    received_ = Vector([](int64_t) { return -1; });
  }
  ~ConformingRank() {
    for (float* const vector : {gradients_, others_, two_, half_, moments_, sent_, received_})
      device_->Free(vector);
  }

  // Gradients that are final in two parts, work beside them, and work that needs them; then what is
  // in order with the computation.
  void Step() {
    Multiply(two_, gradients_);
    Average(gradients_ + kCount / 2, /*in_group=*/false, /*is_aside=*/true);
    Multiply(two_, others_);
    Average(gradients_, /*in_group=*/false, /*is_aside=*/true);
    Multiply(half_, others_);
    Issue(JoinCall{});
    Multiply(half_, gradients_);
    Average(moments_, /*in_group=*/true, /*is_aside=*/false);
    Issue(Ring());
  }

  // Once call by call, once recorded, and replayed.
  void Run() {
    Step();
    std::unique_ptr<Graph> graph;
    Must(device_->BeginGraph());
    Step();
    Must(device_->EndGraph(&graph));
    ASSERT_NE(graph, nullptr);
    for (int launch = 0; launch < 3; ++launch)
      Must(graph->Launch());
    Must(device_->Wait());
  }

  // Small whole numbers and their halves: exact in any order.
  void Check() {
    const auto mean_rank = static_cast<float>(join_.size - 1) / 2;
    const int group = join_.group_size, first = join_.rank - join_.rank % group;
    const float mean_of_group = static_cast<float>(first) + static_cast<float>(group - 1) / 2;
    const int before = (join_.rank + join_.size - 1) % join_.size;
    for (const int64_t i : {int64_t{0}, int64_t{3}, kCount / 2 - 1, kCount / 2, kCount - 1}) {
      SCOPED_TRACE(i);
      EXPECT_EQ(Read(gradients_, i), mean_rank + static_cast<float>(i % 7));
      EXPECT_EQ(Read(others_, i), static_cast<float>(i % 5));
      if (i < kCount / 2) {
        EXPECT_EQ(Read(moments_, i), mean_of_group);
      }
      EXPECT_EQ(Read(received_, i), join_.size == 1 ? -1 : static_cast<float>(10 * before));
    }
  }

 private:
  float* Vector(const std::function<float(int64_t)>& value) {
    std::vector<float> values;
    for (int64_t i = 0; i < kCount; ++i)
      values.push_back(value(i));
    void* memory = nullptr;
    Must(device_->Allocate(values.size() * sizeof(float), &memory));
    Must(device_->CopyIn(values.data(), memory, values.size() * sizeof(float)));
    return static_cast<float*>(memory);
  }
  float Read(const float* vector, int64_t i) {
    float value = 0;
    Must(device_->CopyOut(vector + i, &value, sizeof(value)));
    return value;
  }
  void Must(const Fault& fault) { ASSERT_TRUE(fault.ok()) << fault.text; }
  void Issue(const Call& call) { Must(device_->Issue(call)); }
  void Multiply(const float* factor, float* x) {
    Issue(Kernel(cuda::Multiply{.factor = factor, .x = x, .count = kCount}));
  }
  // Half a vector.
  void Average(float* values, bool in_group, bool is_aside) {
    if (in_group && join_.group_size == 1) return;
    Issue(AverageCall{
        .values = values, .count = kCount / 2, .in_group = in_group, .is_aside = is_aside});
  }
  // To the next rank, from the one before.
  ExchangeCall Ring() const {
    const int next = (join_.rank + 1) % join_.size;
    const int before = (join_.rank + join_.size - 1) % join_.size;
    ExchangeCall call;
    if (join_.size == 1) return call;
    call.messages.push_back({.rank = next, .sent = sent_, .sent_count = kCount});
    call.messages.push_back({.rank = before, .received = received_, .received_count = kCount});
    return call;
  }

  Device* const device_;
  const JoinOptions join_;
  float *gradients_ = nullptr, *others_ = nullptr, *two_ = nullptr, *half_ = nullptr;
  float *moments_ = nullptr, *sent_ = nullptr, *received_ = nullptr;
};

// `size` ranks join, take a step five times, recorded and not, and have what they should.
inline void CheckRanksOnDevices(int size, const OpenRankDevice& open) {
  std::promise<std::string> made;
  const std::shared_future<std::string> id = made.get_future().share();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      const std::unique_ptr<Device> device = open(rank);
      std::string own;
      const Fault fault = device == nullptr || rank > 0 ? Fault{} : device->MakeRanksId(&own);
      EXPECT_TRUE(fault.ok()) << fault.text;
      if (rank == 0) made.set_value(own);
      ASSERT_NE(device, nullptr);
      const JoinOptions join = {.id = id.get(),
                                .rank = rank,
                                .size = size,
                                .group_size = size % 2 == 0 ? 2 : 1,
                                .timeout = std::chrono::seconds(60)};
      const Fault joined = device->JoinRanks(join);
      ASSERT_TRUE(joined.ok()) << joined.text;
      ConformingRank conforming(device.get(), join);
      conforming.Run();
      conforming.Check();
    });
  for (std::thread& thread : threads)
    thread.join();
}

// A rank whose only other does not come says so in time.
inline void CheckRankWaitsInVain(Device* device) {
  std::string id;
  ASSERT_TRUE(device->MakeRanksId(&id).ok());

  const Fault fault = device->JoinRanks(
      {.id = id, .rank = 0, .size = 2, .timeout = std::chrono::milliseconds(1000)});

  EXPECT_EQ(fault.kind, FaultKind::kFailed);
  EXPECT_THAT(fault.text, ::testing::HasSubstr("rank 0 of 2 has waited 1"));
}

}  // namespace assay::cuda

#endif  // TESTS_WORKER_ENGINE_CUDA_DEVICE_RANKS_CONFORMANCE_H_
