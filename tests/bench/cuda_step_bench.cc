// Time of one CosmoFlow training step on a GPU, data already in host memory.
//
//   cuda_step_bench [BACKEND...]       default: cuda cuda-tf32 cuda-bf16
//
// Per backend, cube and batch: the median time of a step with the copy of its input and the loss
// read back, samples per second, and multiply-adds (counted twice, without padding or optimizer)
// per second. Steps before the third are not counted: libraries load and choose, and the step is
// recorded. Exit status 1 if a backend cannot be used.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "common/log.h"
#include "common/random.h"
#include "worker/engine/backends/registry.h"
#include "worker/engine/trainable.h"
#include "worker/models/registry.h"

namespace assay {
namespace {

constexpr int kWarmUpSteps = 5;
constexpr int kSteps = 30;

struct Case {
  int64_t edge, batch;
};

constexpr Case kCases[] = {{32, 1},  {32, 32}, {64, 1},  {64, 8},
                           {128, 1}, {128, 2}, {128, 4}, {128, 8}};

// Forward, gradients of weights, and gradients of inputs except the first.
double TrainingFlops(const CosmoflowSpec& spec) {
  double flops = 0;
  int64_t edge = spec.cube_edge, in = kCosmoflowChannels;
  for (int64_t block = 0; block < 5; ++block, edge /= 2) {
    const int64_t out = spec.base_filters << block;
    const int64_t products =
        edge * edge * edge * spec.kernel * spec.kernel * spec.kernel * in * out;
    flops += 2.0 * static_cast<double>(products) * (block > 0 ? 3 : 2);
    in = out;
  }
  flops += 6.0 * static_cast<double>(edge * edge * edge * in * 128 + 128 * 64 + 64 * 4);
  return flops * static_cast<double>(spec.batch);
}

absl::StatusOr<std::unique_ptr<Trainable>> Make(const std::string& name, const Case& row) {
  absl::StatusOr<std::unique_ptr<Backend>> backend = MakeBackend(name);
  if (!backend.ok()) return backend.status();
  return MakeTrainable({.cosmoflow = {.batch = row.batch, .cube_edge = row.edge},
                        .options = {.seed = 1, .is_alone = true}},
                       *std::move(backend));
}

absl::Status Measure(const std::string& name, const Case& row) {
  absl::StatusOr<std::unique_ptr<Trainable>> model = Make(name, row);
  if (!model.ok()) return model.status();
  const Stream stream(1, Purpose::kTest);
  std::vector<int16_t> voxels(static_cast<size_t>(row.batch * (*model)->input_elements()));
  for (size_t i = 0; i < voxels.size(); ++i)
    voxels[i] = static_cast<int16_t>(stream.Below(i, 5));
  const std::vector<float> targets(static_cast<size_t>(row.batch * (*model)->outputs()), 0.25F);
  std::vector<double> times_s;
  float loss = 0;
  for (int step = 0; step < kWarmUpSteps + kSteps; ++step) {
    const auto start = std::chrono::steady_clock::now();
    const absl::StatusOr<float> result =
        (*model)->TrainStep(MakeBatch(voxels, targets), {.step = static_cast<uint64_t>(step)}, 1e-3,
                            [](std::span<float>) { return absl::OkStatus(); });
    if (!result.ok()) return result.status();
    loss = *result;
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    if (step >= kWarmUpSteps) times_s.push_back(time.count());
  }
  std::sort(times_s.begin(), times_s.end());
  const double median_s = times_s[times_s.size() / 2];
  const double flops = TrainingFlops({.batch = row.batch, .cube_edge = row.edge});
  std::printf("%-10s %5d %5d %10.3f %10.3f %12.1f %10.2f %10.5f\n", name.c_str(),
              static_cast<int>(row.edge), static_cast<int>(row.batch), median_s * 1e3,
              times_s.front() * 1e3, static_cast<double>(row.batch) / median_s,
              flops / median_s * 1e-12, double{loss});
  std::fflush(stdout);
  return absl::OkStatus();
}

int Main(std::vector<std::string> names) {
  if (names.empty()) names = {"cuda", "cuda-tf32", "cuda-bf16"};
  std::printf("%-10s %5s %5s %10s %10s %12s %10s %10s\n", "backend", "cube", "batch", "median ms",
              "best ms", "samples/s", "TFLOP/s", "last loss");
  for (const std::string& name : names)
    for (const Case& row : kCases) {
      const absl::Status status = Measure(name, row);
      if (status.ok()) continue;
      LOG(ERROR) << "backend=" << name << " cube=" << row.edge << " batch=" << row.batch
                 << " status=\"" << status << "\"";
      if (!absl::IsResourceExhausted(status)) return 1;
    }
  return 0;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  return assay::Main(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
}
