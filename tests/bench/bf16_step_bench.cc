// Training steps of CosmoFlow on the CPU in bfloat16 against float32.
//
//   OMP_NUM_THREADS=1 bf16_step_bench --benchmark_filter='cosmoflow/' --benchmark_min_time=3
//
// Takes steps of the two backends in turn, so that whatever else the machine does disturbs both
// alike, and compares the medians and the fastest steps. Figures: docs/benchmarks/training.md.

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

namespace assay {
namespace {

// A model with one batch of random samples.
class Contender {
 public:
  Contender(const ModelSpec& spec, absl::string_view backend_name) {
    auto backend = MakeBackend(backend_name);
    CHECK_OK(backend.status());
    auto model = MakeTrainable(spec, *std::move(backend));
    CHECK_OK(model.status());
    model_ = *std::move(model);
    const Stream stream(1, Purpose::kTest);
    const auto samples = static_cast<size_t>(model_->batch_size());
    const size_t inputs = samples * static_cast<size_t>(model_->input_elements());
    for (size_t i = 0; i < inputs; ++i)
      counts_.push_back(static_cast<int16_t>(stream.Below(i, 8)));
    for (size_t i = 0; i < samples * static_cast<size_t>(model_->outputs()); ++i)
      floats_.push_back(2 * stream.Uniform(i) - 1);
    batch_ = MakeBatch(counts_, floats_);
  }
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;

  void Step() {
    const auto start = std::chrono::steady_clock::now();
    const auto keep = [](std::span<float>) { return absl::OkStatus(); };
    CHECK_OK(model_->TrainStep(batch_, {.step = step_++}, 1e-4, keep).status());
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    milliseconds_.push_back(took.count());
  }
  // The first step plans, and touches memory for the first time.
  void WarmUp() {
    Step();
    milliseconds_.clear();
  }

  double fastest() const { return *std::min_element(milliseconds_.begin(), milliseconds_.end()); }
  double median() const {
    std::vector<double> sorted = milliseconds_;
    const auto middle = sorted.begin() + std::ssize(sorted) / 2;
    std::nth_element(sorted.begin(), middle, sorted.end());
    return *middle;
  }

 private:
  std::unique_ptr<Trainable> model_;
  std::vector<int16_t> counts_;
  std::vector<float> floats_;
  Batch batch_;  // borrows from both
  uint64_t step_ = 0;
  std::vector<double> milliseconds_;
};

void Compare(benchmark::State& state, const ModelSpec& spec) {
  if (const auto backend = MakeBackend("onednn-bf16"); !backend.ok())
    return state.SkipWithError(backend.status().ToString().c_str());
  Contender floats(spec, "onednn"), bf16(spec, "onednn-bf16");
  floats.WarmUp();
  bf16.WarmUp();
  for (auto _ : state) {
    floats.Step();
    bf16.Step();
  }
  state.counters["float_ms"] = floats.median();
  state.counters["bf16_ms"] = bf16.median();
  state.counters["speedup"] = floats.median() / bf16.median();
  state.counters["float_best_ms"] = floats.fastest();
  state.counters["bf16_best_ms"] = bf16.fastest();
  state.counters["speedup_best"] = floats.fastest() / bf16.fastest();
}

void Cosmoflow(benchmark::State& state) {
  ModelSpec spec;
  spec.cosmoflow = {
      .batch = state.range(2), .cube_edge = state.range(0), .base_filters = state.range(1)};
  Compare(state, spec);
}

BENCHMARK(Cosmoflow)
    ->Name("cosmoflow")
    ->ArgNames({"edge", "filters", "batch"})
    ->ArgsProduct({{32}, {8, 32}, {1, 4, 8}})
    ->ArgsProduct({{64, 128}, {32}, {1, 2, 4}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace assay

BENCHMARK_MAIN();
