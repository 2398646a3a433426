// Time of one CosmoFlow training step and one evaluation batch, as a share of the machine's peak.
//
//   OMP_NUM_THREADS=1 cosmoflow_step_bench --benchmark_filter='train/edge:32/.*'
//
// `of_peak` divides the model's multiply-adds (counted twice, without padding or optimizer) per
// second by what a 2048-cubed oneDNN matrix product reaches in this process on the same threads
// just before. It may pass 1: the backward passes skip products with zero. Figures:
// docs/benchmarks/training.md.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/log.h"
#include "common/random.h"
#include "tests/worker/engine/make_batch.h"
#include "worker/engine/backends/registry.h"
#include "worker/engine/trainable.h"
#include "worker/models/registry.h"
#include <oneapi/dnnl/dnnl.hpp>

namespace assay {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Best of several products, in FLOP per second.
double MeasurePeak() {
  constexpr int64_t kSize = 2048;
  constexpr int kRepetitions = 10;
  const std::vector<float> a(kSize * kSize, 0.5F), b(kSize * kSize, 0.25F);
  std::vector<float> c(kSize * kSize);
  double best = 1e30;
  for (int i = 0; i < kRepetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    dnnl::sgemm('N', 'N', kSize, kSize, kSize, 1, a.data(), kSize, b.data(), kSize, 0, c.data(),
                kSize);
    best = std::min(best, SecondsSince(start));
  }
  return 2.0 * kSize * kSize * kSize / best;
}

double Peak() {
  static const double peak = MeasurePeak();
  return peak;
}

struct StepFlops {
  double forward = 0;
  double training = 0;  // forward, weight gradients, and data gradients except of the input
};

StepFlops FlopsOf(const CosmoflowSpec& spec) {
  StepFlops flops;
  const auto add = [&flops](double layer, bool has_data_gradient) {
    flops.forward += layer;
    flops.training += layer * (has_data_gradient ? 3 : 2);
  };
  const auto samples = static_cast<double>(spec.batch);
  int64_t edge = spec.cube_edge, in = kCosmoflowChannels;
  for (int64_t block = 0; block < 5; ++block, edge /= 2) {
    const int64_t out = spec.base_filters << block;
    const int64_t taps = spec.kernel * spec.kernel * spec.kernel;
    add(2 * samples * static_cast<double>(edge * edge * edge * taps * in * out), block > 0);
    in = out;
  }
  add(2 * samples * static_cast<double>(edge * edge * edge * in * 128 + 128 * 64 + 64 * 4), true);
  return flops;
}

struct HostBatch {
  std::vector<int16_t> voxels;
  std::vector<float> targets;
};

HostBatch DrawBatch(const Trainable& model) {
  const Stream stream(1, Purpose::kTest);
  HostBatch batch;
  batch.voxels.resize(static_cast<size_t>(model.batch_size() * model.input_elements()));
  batch.targets.resize(static_cast<size_t>(model.batch_size() * model.outputs()));
  for (size_t i = 0; i < batch.voxels.size(); ++i)
    batch.voxels[i] = static_cast<int16_t>(stream.Below(i, 8));
  for (size_t i = 0; i < batch.targets.size(); ++i)
    batch.targets[i] = 2 * stream.Uniform(i) - 1;
  return batch;
}

std::unique_ptr<Trainable> MakeModel(const CosmoflowSpec& spec) {
  auto backend = MakeBackend("onednn");
  CHECK_OK(backend.status());
  auto model = MakeTrainable({.cosmoflow = spec}, *std::move(backend));
  CHECK_OK(model.status());
  return *std::move(model);
}

CosmoflowSpec SpecOf(const benchmark::State& state) {
  return {.batch = state.range(2), .cube_edge = state.range(0), .base_filters = state.range(1)};
}

void Report(benchmark::State& state, int64_t batch, double flops) {
  const double steps = static_cast<double>(state.iterations());
  const double peak = Peak();
  state.counters["samples/s"] =
      benchmark::Counter(steps * static_cast<double>(batch), benchmark::Counter::kIsRate);
  state.counters["of_peak"] = benchmark::Counter(steps * flops / peak, benchmark::Counter::kIsRate);
  state.counters["peak_gflops"] = peak / 1e9;
}

void Train(benchmark::State& state) {
  const CosmoflowSpec spec = SpecOf(state);
  const std::unique_ptr<Trainable> model = MakeModel(spec);
  const HostBatch batch = DrawBatch(*model);
  const auto keep = [](std::span<float>) { return absl::OkStatus(); };
  uint64_t step = 0;
  Peak();
  for (auto _ : state)
    CHECK_OK(model->TrainStep(MakeBatch(batch.voxels, batch.targets), {.step = step++}, 1e-4, keep)
                 .status());
  Report(state, spec.batch, FlopsOf(spec).training);
}

void Evaluate(benchmark::State& state) {
  const CosmoflowSpec spec = SpecOf(state);
  const std::unique_ptr<Trainable> model = MakeModel(spec);
  const HostBatch batch = DrawBatch(*model);
  Peak();
  for (auto _ : state)
    CHECK_OK(model->EvalBatch(MakeBatch(batch.voxels, batch.targets)).status());
  Report(state, spec.batch, FlopsOf(spec).forward);
}

void Sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"edge", "filters", "batch"})->Unit(benchmark::kMillisecond)->UseRealTime();
  bench->ArgsProduct({{32}, {8, 32}, {1, 4, 8}});
  bench->ArgsProduct({{64}, {32}, {1, 2, 4}});
  bench->ArgsProduct({{128}, {32}, {1, 2, 4}});
}

BENCHMARK(Train)->Name("train")->Apply(Sizes);
BENCHMARK(Evaluate)->Name("eval")->Apply(Sizes);

}  // namespace
}  // namespace assay

BENCHMARK_MAIN();
