// Time of one DeepCAM training step and one evaluation batch at the reference's width.
//
//   OMP_NUM_THREADS=1 deepcam_step_bench --benchmark_filter='train/height:96/.*'
//
// `gflops` counts the model's multiply-adds twice, without normalisation or optimizer. A share of
// the machine's peak beside PyTorch's: pytorch_ratio.py and docs/benchmarks/pytorch.md.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>

#include "common/log.h"
#include "tests/bench/step_model.h"

namespace assay {
namespace {

// Of one sample at 768 x 1152, forward and both backward passes: the sum over the layers.
constexpr double kFlopsPerPixel = 1963.97e9 / (768 * 1152);

ModelSpec SpecOf(const benchmark::State& state) {
  ModelSpec spec = {.name = "deepcam"};
  spec.deepcam = {.batch = state.range(2), .height = state.range(0), .width = state.range(1)};
  spec.options.reduction.is_alone = true;
  spec.options.optimizer.kind = OptimizerOptions::Kind::kLamb;
  return spec;
}

std::unique_ptr<StepModel> MakeModel(const ModelSpec& spec) {
  auto model = StepModel::Make(spec, "onednn");
  CHECK_OK(model.status());
  return *std::move(model);
}

void Report(benchmark::State& state, double flops_per_pixel) {
  const double steps = static_cast<double>(state.iterations());
  const double samples = steps * static_cast<double>(state.range(2));
  const double pixels = samples * static_cast<double>(state.range(0) * state.range(1));
  state.counters["samples/s"] = benchmark::Counter(samples, benchmark::Counter::kIsRate);
  state.counters["gflops"] =
      benchmark::Counter(pixels * flops_per_pixel / 1e9, benchmark::Counter::kIsRate);
}

void Train(benchmark::State& state) {
  const std::unique_ptr<StepModel> model = MakeModel(SpecOf(state));
  for (auto _ : state)
    CHECK_OK(model->Train());
  Report(state, kFlopsPerPixel);
}

void Evaluate(benchmark::State& state) {
  const std::unique_ptr<StepModel> model = MakeModel(SpecOf(state));
  for (auto _ : state)
    CHECK_OK(model->Evaluate());
  Report(state, kFlopsPerPixel / 3);
}

void Sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"height", "width", "batch"})->Unit(benchmark::kMillisecond)->UseRealTime();
  for (const int64_t batch : {1, 2, 4, 8})
    bench->Args({96, 144, batch})->Args({192, 288, batch});
  bench->Args({768, 1152, 1});
}

BENCHMARK(Train)->Name("train")->Apply(Sizes);
BENCHMARK(Evaluate)->Name("eval")->Apply(Sizes);

}  // namespace
}  // namespace assay

BENCHMARK_MAIN();
