#include "worker/trainer/all_reduce_times.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/status.h"
#include "worker/comm/collective.h"
#include "worker/comm/registry.h"
#include "worker/comm/ring.h"
#include "worker/trainer/fabric.h"

namespace assay {
namespace {

constexpr int64_t kBytesOfAll = int64_t{128} << 20;
constexpr int64_t kRoundsMin = 7;
constexpr int64_t kRoundsMax = 500;
constexpr int kWarmUpCount = 3;

absl::StatusOr<double> MedianUs(comm::Collective* comm, int64_t bytes, const Clock& clock,
                                MonoTime deadline) {
  std::vector<float> values(static_cast<size_t>(bytes) / sizeof(float));
  std::vector<absl::Duration> times;
  const int64_t rounds =
      std::clamp(kBytesOfAll / std::max<int64_t>(bytes, 1), kRoundsMin, kRoundsMax);
  for (int64_t i = -kWarmUpCount; i < rounds; ++i) {
    RETURN_IF_ERROR(comm::Barrier(comm, deadline));
    const MonoTime begin = clock.Mono();
    RETURN_IF_ERROR(comm::AllReduceSum(comm, std::span<float>(values), deadline));
    if (i >= 0) times.push_back(clock.Mono() - begin);
  }
  const auto middle = times.begin() + std::ssize(times) / 2;
  std::nth_element(times.begin(), middle, times.end());
  return absl::ToDoubleMicroseconds(*middle);
}

}  // namespace

absl::StatusOr<std::vector<AllReduceTime>> MeasureAllReduces(const v1::FabricSpec& spec,
                                                             std::span<const int64_t> sizes,
                                                             const Clock* clock) {
  const MonoTime deadline = clock->Mono() + absl::Seconds(spec.time_limit().seconds());
  ASSIGN_OR_RETURN(const std::unique_ptr<comm::Collective> comm,
                   comm::OpenCollective("ucx", OptionsOf(spec), clock, deadline));
  std::vector<AllReduceTime> times;
  for (const int64_t bytes : sizes) {
    ASSIGN_OR_RETURN(const double us, MedianUs(comm.get(), bytes, *clock, deadline));
    times.push_back({.bytes = bytes, .median_us = us});
  }
  RETURN_IF_ERROR(comm->Close(deadline));
  return times;
}

}  // namespace assay
