#include "worker/trainer/all_reduce_times.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/exit_code.h"
#include "common/log.h"
#include "common/status.h"
#include "worker/comm/collective.h"
#include "worker/comm/registry.h"
#include "worker/comm/ring.h"
#include "worker/engine/rank_average.h"
#include "worker/engine/tensor.h"
#include "worker/trainer/device_ranks.h"
#include "worker/trainer/fabric.h"
#include "worker/trainer/failure.h"

namespace assay {
namespace {

constexpr int64_t kBytesOfAll = int64_t{128} << 20;
constexpr int64_t kRoundsMin = 7;
constexpr int64_t kRoundsMax = 500;
constexpr int kWarmUpCount = 3;
// For GPUs to join, and later for one that is silent.
constexpr absl::Duration kDevicePatience = absl::Minutes(2);

// What is timed: all ranks make the same calls.
class Reduction {
 public:
  virtual ~Reduction() = default;
  // From now on vectors of this size, zeros.
  virtual absl::Status Resize(int64_t bytes) = 0;
  // Returns when the result is there.
  virtual absl::Status Run() = 0;
};

class HostSum : public Reduction {
 public:
  HostSum(comm::Collective* comm, MonoTime deadline) : comm_(comm), deadline_(deadline) {}

  absl::Status Resize(int64_t bytes) override {
    values_.assign(static_cast<size_t>(bytes) / sizeof(float), 0);
    return absl::OkStatus();
  }
  absl::Status Run() override {
    return comm::AllReduceSum(comm_, std::span<float>(values_), deadline_);
  }

 private:
  comm::Collective* const comm_;
  const MonoTime deadline_;
  std::vector<float> values_;
};

class DeviceMean : public Reduction {
 public:
  explicit DeviceMean(Backend* backend) : backend_(backend) {}
  ~DeviceMean() override { Free(); }
  DeviceMean(const DeviceMean&) = delete;
  DeviceMean& operator=(const DeviceMean&) = delete;

  absl::Status Resize(int64_t bytes) override {
    Free();
    ASSIGN_OR_RETURN(void* const data, WithExitCode(backend_->Allocate(static_cast<size_t>(bytes)),
                                                    ExitCode::kOutOfMemory));
    values_ = {data, {bytes / static_cast<int64_t>(sizeof(float))}, DType::kFloat32};
    backend_->Synchronize();
    return absl::OkStatus();
  }
  absl::Status Run() override {
    backend_->rank_average()->Average(values_, RankScope::kAll);
    backend_->Synchronize();
    return absl::OkStatus();
  }

 private:
  void Free() {
    if (values_.data != nullptr) backend_->Free(std::exchange(values_, {}).data);
  }

  Backend* const backend_;
  Tensor values_;
};

// Every rank begins when the last one has come.
absl::StatusOr<double> MedianUs(comm::Collective* comm, int64_t bytes, Reduction* reduction,
                                const Clock& clock, MonoTime deadline) {
  RETURN_IF_ERROR(reduction->Resize(bytes));
  std::vector<absl::Duration> times;
  const int64_t rounds =
      std::clamp(kBytesOfAll / std::max<int64_t>(bytes, 1), kRoundsMin, kRoundsMax);
  for (int64_t i = -kWarmUpCount; i < rounds; ++i) {
    RETURN_IF_ERROR(comm::Barrier(comm, deadline));
    const MonoTime begin = clock.Mono();
    RETURN_IF_ERROR(reduction->Run());
    if (i >= 0) times.push_back(clock.Mono() - begin);
  }
  const auto middle = times.begin() + std::ssize(times) / 2;
  std::nth_element(times.begin(), middle, times.end());
  return absl::ToDoubleMicroseconds(*middle);
}

absl::StatusOr<std::vector<AllReduceTime>> Measure(comm::Collective* comm,
                                                   std::span<const int64_t> sizes,
                                                   Reduction* reduction, const Clock& clock,
                                                   MonoTime deadline) {
  std::vector<AllReduceTime> times;
  for (const int64_t bytes : sizes) {
    ASSIGN_OR_RETURN(const double us, MedianUs(comm, bytes, reduction, clock, deadline));
    times.push_back({.bytes = bytes, .median_us = us});
  }
  return times;
}

}  // namespace

absl::StatusOr<std::vector<AllReduceTime>> MeasureAllReduces(const v1::FabricSpec& spec,
                                                             std::span<const int64_t> sizes,
                                                             const Clock* clock) {
  const MonoTime deadline = clock->Mono() + absl::Seconds(spec.time_limit().seconds());
  ASSIGN_OR_RETURN(const std::unique_ptr<comm::Collective> comm,
                   comm::OpenCollective("ucx", OptionsOf(spec), clock, deadline));
  HostSum sum(comm.get(), deadline);
  ASSIGN_OR_RETURN(std::vector<AllReduceTime> times,
                   Measure(comm.get(), sizes, &sum, *clock, deadline));
  RETURN_IF_ERROR(comm->Close(deadline));
  return times;
}

absl::StatusOr<std::vector<AllReduceTime>> MeasureDeviceAverages(const v1::FabricSpec& spec,
                                                                 std::span<const int64_t> sizes,
                                                                 Backend* backend,
                                                                 const Clock* clock) {
  const MonoTime deadline = clock->Mono() + absl::Seconds(spec.time_limit().seconds());
  RankAverage* const average = backend->rank_average();
  CHECK(average != nullptr) << "backend=" << backend->name();
  // On each rank, so that none waits for one that lacks the library.
  RETURN_IF_ERROR(WithExitCode(average->MakeId().status(), ExitCode::kBackend));
  ASSIGN_OR_RETURN(const std::unique_ptr<comm::Collective> comm,
                   comm::OpenCollective("ucx", OptionsOf(spec), clock, deadline));
  RETURN_IF_ERROR(JoinDeviceRanks(average, /*group_size=*/1, comm.get(), clock, kDevicePatience));
  if (!average->has_joined())
    return absl::FailedPreconditionError("the GPUs have not joined each other");
  DeviceMean mean(backend);
  ASSIGN_OR_RETURN(std::vector<AllReduceTime> times,
                   Measure(comm.get(), sizes, &mean, *clock, deadline));
  RETURN_IF_ERROR(comm->Close(deadline));
  return times;
}

}  // namespace assay
