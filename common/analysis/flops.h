// How much arithmetic a run does, and what share of the hardware's peak that is.

#ifndef COMMON_ANALYSIS_FLOPS_H_
#define COMMON_ANALYSIS_FLOPS_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

#include "common/analysis/entry.h"
#include "common/rules/ruleset.h"

namespace assay::analysis {

// Floating point operations that one sample costs: those of convolutions and matrix products, as
// the model defines them; a multiply-add is two. Recomputed activations do not count.
struct SampleFlops {
  double train = 0;  // forward and backward
  double eval = 0;   // forward
};

// CosmoFlow of another size than the reference's.
struct CosmoflowSize {
  int edge = 128;    // voxels a side of the cube, at least 32
  int kernel = 3;    // of the convolutions
  int filters = 32;  // of the first convolution; each further one has twice as many
};
SampleFlops CosmoflowFlops(const CosmoflowSize& size);

// Of the reference model of a round; nullopt where it has not been counted. CosmoFlow's kernels
// are as the round has them: of 2 voxels in v0.7, of 3 since v1.0.
std::optional<SampleFlops> ReferenceFlops(const rules::Benchmark& benchmark);

struct PeakRate {
  double tflops = 0;      // of one unit
  std::string precision;  // at which its vendor gives it
};
// The highest rate of tensor operations (vector operations where it has no tensor units) that the
// vendor's data sheet gives; nullopt for a model that is not in the table.
std::optional<PeakRate> PeakOf(absl::string_view model);

struct Efficiency {
  double run_flops = 0;       // of a run: training and evaluation, mean over the runs that count
  double tflops_per_s = 0;    // over the whole run, all units
  double quality_factor = 0;  // (achieved quality / target)^n, mean over runs
  double valid_tflops_per_s = 0;      // HPC AI500: FLOPS times the quality factor
  std::optional<double> utilisation;  // of the peak, from 0 to 1; none without a peak
};

// HPC AI500 (arXiv:2007.00279) penalises a missed quality by the n-th power of achieved / target.
inline constexpr int kQualitySensitivity = 5;

// Efficiency of an entry. Utilisation as MLPerf recommends it (training rules, appendix
// Utilization): FLOPs of the model / (peak * mean run time). Where a lower quality value is better
// the ratio is target / achieved. nullopt: no run counts, or one of them logs neither samples nor
// quality.
std::optional<Efficiency> EfficiencyOf(const Characteristics& entry, const SampleFlops& flops,
                                       const rules::Benchmark& benchmark,
                                       std::optional<double> peak_tflops, int sensitivity);

}  // namespace assay::analysis

#endif  // COMMON_ANALYSIS_FLOPS_H_
