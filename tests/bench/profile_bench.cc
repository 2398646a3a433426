// What the profile of a run costs one training step of a rank: everything that it adds to the step,
// around a step and a transport that do nothing. docs/benchmarks/training.md has the figure.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "benchmark/benchmark.h"

#include "common/clock.h"
#include "common/log.h"
#include "worker/comm/collective.h"
#include "worker/trainer/profile.h"

namespace assay {
namespace {

// Of four ranks that average 4,778,788 gradients (CosmoFlow on cubes of 32) in slices of 128 KiB:
// six times 37 slices, each sent and received.
constexpr int kSlices = 6 * 37;
constexpr size_t kSliceBytes = size_t{128} << 10;

class Nothing final : public comm::Collective {
 public:
  Nothing() : Collective(0, 4) {}
  std::string Describe(int) const override { return ""; }

 private:
  comm::Request DoStartSend(comm::Envelope, std::span<const std::byte>) override { return {0}; }
  comm::Request DoStartReceive(comm::Envelope, std::span<std::byte>) override { return {1}; }
  absl::Status DoWait(comm::Request, MonoTime) override { return absl::OkStatus(); }
  absl::Status DoClose(MonoTime) override { return absl::OkStatus(); }
  void DoAbort() override {}
};

void Average(comm::Collective* comm, std::span<std::byte> slice) {
  const comm::Operation operation(comm, kSlices * kSliceBytes);
  for (int i = 0; i < kSlices; ++i) {
    const comm::Request sent = comm->StartSend({.peer = 1, .tag = 1}, slice);
    const comm::Request received = comm->StartReceive({.peer = 3, .tag = 1}, slice);
    CHECK_OK(comm->Wait(received, {}));
    CHECK_OK(comm->Wait(sent, {}));
  }
}

// Argument: whether it is profiled.
void BM_StepOfNothing(benchmark::State& state) {
  const RealClock clock;
  Profile profile(&clock);
  profile.set_work({.train_flops = 0.75e9, .eval_flops = 0.25e9});
  std::unique_ptr<comm::Collective> comm = std::make_unique<Nothing>();
  const bool is_profiled = state.range(0) == 1;
  if (is_profiled) comm = profile.Watch(std::move(comm));
  std::vector<std::byte> slice(kSliceBytes);
  for (const auto& iteration : state) {
    static_cast<void>(iteration);
    if (is_profiled) {
      { const Profile::Span wait(&profile, &ProfileCounts::input_wait_s); }
      benchmark::DoNotOptimize(clock.Mono());  // Trainable, around copying the batch in
      benchmark::DoNotOptimize(clock.Mono());
      profile.Trained(4);
    }
    Average(comm.get(), slice);
  }
}
BENCHMARK(BM_StepOfNothing)->Arg(0)->Arg(1);

}  // namespace
}  // namespace assay
