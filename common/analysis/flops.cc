#include "common/analysis/flops.h"

#include <array>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace assay::analysis {
namespace {

constexpr double kTera = 1e12;
constexpr int kConvolutions = 5;
constexpr int kInputChannels = 4;
constexpr std::array<double, 3> kDenseWidths = {128, 64, 4};

struct Peak {
  absl::string_view word;  // of the model's name, lower case; the first match counts
  double tflops;
  absl::string_view precision;
};

// Data sheets of the vendors, dense. A64FX: 48 cores, 2.2 GHz, 64 operations a cycle in fp32; Xeon
// Phi 7250: 68 cores, 1.4 GHz, 64 operations a cycle.
constexpr Peak kPeaks[] = {
    {"h200", 989.4, "bf16 tensor"}, {"h100-pcie", 756, "bf16 tensor"},
    {"h100", 989.4, "bf16 tensor"}, {"a100", 312, "bf16 tensor"},
    {"v100", 125, "fp16 tensor"},   {"rtx 5000", 89.2, "fp16 tensor"},
    {"p100-pcie", 18.7, "fp16"},    {"p100", 21.2, "fp16"},
    {"a64fx", 6.758, "fp32"},       {"xeon phi processor 7250", 6.093, "fp32"}};

// DeepCAM at 768 x 1152: forward pass of the reference network, traced; the backward pass costs
// twice as much but for the input gradient of the first convolution.
constexpr SampleFlops kDeepcam = {.train = 1963.97e9, .eval = 655.34e9};

double Cube(double x) {
  return x * x * x;
}

}  // namespace

SampleFlops CosmoflowFlops(const CosmoflowSize& size) {
  SampleFlops flops;
  double edge = size.edge;
  double in = kInputChannels;
  double out = size.filters;
  double first = 0;
  for (int i = 0; i < kConvolutions; ++i) {
    const double layer = 2 * Cube(size.kernel) * in * out * Cube(edge);
    if (i == 0) first = layer;
    flops.eval += layer;
    in = out;
    out *= 2;
    edge /= 2;  // pooling follows
  }
  double width = in * Cube(edge);
  for (const double next : kDenseWidths) {
    flops.eval += 2 * width * next;
    width = next;
  }
  // Gradients of weights and of inputs cost as much as the forward pass; nothing wants the gradient
  // of the samples.
  flops.train = 3 * flops.eval - first;
  return flops;
}

std::optional<SampleFlops> ReferenceFlops(const rules::Benchmark& benchmark) {
  if (benchmark.name == "deepcam") return kDeepcam;
  if (benchmark.name != "cosmoflow") return std::nullopt;
  CosmoflowSize size;
  for (const auto& [name, value] : benchmark.fixed)
    if (name == "kernel_size")
      size.kernel = static_cast<int>(value.AsInt64().value_or(size.kernel));
  return CosmoflowFlops(size);
}

std::optional<PeakRate> PeakOf(absl::string_view model) {
  const std::string name = absl::AsciiStrToLower(model);
  for (const Peak& peak : kPeaks)
    if (absl::StrContains(name, peak.word))
      return PeakRate{.tflops = peak.tflops, .precision = std::string(peak.precision)};
  return std::nullopt;
}

std::optional<Efficiency> EfficiencyOf(const Characteristics& entry, const SampleFlops& flops,
                                       const rules::Benchmark& benchmark,
                                       std::optional<double> peak_tflops, int sensitivity) {
  if (entry.runs.empty()) return std::nullopt;
  double run_s = 0;
  Efficiency result;
  for (const int index : entry.runs) {
    const RunTimes& run = entry.entry.runs[static_cast<size_t>(index)];
    if (!run.train_samples || !run.eval_samples || !run.quality || !(*run.run_s > 0) ||
        !(*run.quality > 0))
      return std::nullopt;
    const double work = static_cast<double>(run.closed_epochs) * *run.train_samples * flops.train +
                        static_cast<double>(run.evaluations) * *run.eval_samples * flops.eval;
    const double ratio = benchmark.lower_is_better ? benchmark.target / *run.quality
                                                   : *run.quality / benchmark.target;
    const double factor = std::pow(ratio, sensitivity);
    result.run_flops += work;
    result.quality_factor += factor;
    result.valid_tflops_per_s += work / *run.run_s * factor / kTera;
    run_s += *run.run_s;
  }
  const auto count = static_cast<double>(entry.runs.size());
  result.tflops_per_s = result.run_flops / run_s / kTera;
  result.run_flops /= count;
  result.quality_factor /= count;
  result.valid_tflops_per_s /= count;
  if (peak_tflops && entry.entry.units() > 0)
    result.utilisation =
        result.tflops_per_s / (*peak_tflops * static_cast<double>(entry.entry.units()));
  return result;
}

}  // namespace assay::analysis
