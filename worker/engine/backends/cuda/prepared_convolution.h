// One convolution made ready for a Device: plans, packed weights, and the conversions around them.
//
// x, w, dw and dx are float32 in the engine's layouts; y and dy are in the convolution's own number
// (is_short), so that a fused block can keep them short.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_PREPARED_CONVOLUTION_H_
#define WORKER_ENGINE_BACKENDS_CUDA_PREPARED_CONVOLUTION_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "worker/engine/backends/cuda/cuda_backend.h"
#include "worker/engine/backends/cuda/plan.h"

namespace assay::cuda {

// Not thread-safe; must not outlive its backend.
class PreparedConvolution {
 public:
  // Tries `precision`, then more exact ones, then loops of ours, which those in groups have anyway.
  // RESOURCE_EXHAUSTED, INTERNAL.
  static absl::StatusOr<std::unique_ptr<PreparedConvolution>> Make(CudaBackend* backend,
                                                                   const ConvolutionLayout& layout,
                                                                   Precision precision,
                                                                   bool wants_dx);
  ~PreparedConvolution();
  PreparedConvolution(const PreparedConvolution&) = delete;
  PreparedConvolution& operator=(const PreparedConvolution&) = delete;

  const ConvolutionLayout& layout() const { return layout_; }
  // Whether y and dy are Bfloat16; else float.
  bool is_short() const { return !is_direct_ && precision_ == Precision::kBfloat16; }
  // Of the memory that each of the passes needs while it runs.
  size_t scratch_bytes() const { return scratch_.bytes(); }

  void WeightsChanged() { is_packed_ = false; }
  void Forward(float* x, float* w, void* y, void* scratch);
  void BackwardData(void* dy, float* w, float* dx, void* scratch);
  void BackwardWeights(float* x, void* dy, float* dw, void* scratch);

 private:
  struct Plans {
    std::unique_ptr<ConvolutionPlan> forward, data, weights;
  };

  PreparedConvolution(CudaBackend* backend, const ConvolutionLayout& layout, bool wants_dx)
      : backend_(backend), layout_(layout), wants_dx_(wants_dx) {}
  absl::Status Choose(Precision precision);
  absl::Status MakePlans(Precision precision, Plans* plans) const;
  absl::Status PlanMemory();
  void SumTaps(float* x, float* dy, float* dw);
  void Pack(float* w);
  void* PaddedInput(float* x, void* scratch);
  void Call(ConvolutionPlan* plan, void* x, void* w, void* y, void* scratch);

  CudaBackend* const backend_;
  const ConvolutionLayout layout_;
  const bool wants_dx_;
  Precision precision_ = Precision::kFloat32;
  bool is_direct_ = false;
  Plans plans_;
  ScratchPlan scratch_;
  size_t input_offset_ = 0;      // in scratch: x or dx as cuDNN has it, if that is another
  size_t gradient_offset_ = 0;   // in scratch: dw as cuDNN has it
  size_t workspace_offset_ = 0;  // in scratch: the library's own
  void* packed_ = nullptr;       // w as cuDNN has it
  bool is_packed_ = false;
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_PREPARED_CONVOLUTION_H_
