// One convolution made ready for a Device: plans, packed weights, and the conversions around them.
//
// w and dw are float32 in the engine's layouts. x, dx, y and dy are in the number that the caller
// says; a fused block takes y and dy in the convolution's own, so that they stay bfloat16.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_PREPARED_CONVOLUTION_H_
#define WORKER_ENGINE_BACKENDS_CUDA_PREPARED_CONVOLUTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "worker/engine/backends/cuda/cuda_backend.h"
#include "worker/engine/backends/cuda/plan.h"

namespace assay::cuda {

// Not thread-safe; must not outlive its backend.
class PreparedConvolution {
 public:
  struct Options {
    Precision precision = Precision::kFloat32;  // tried first
    bool wants_dx = true;
    bool bf16_maps = false;  // x, dx, y and dy are Bfloat16; else float
    bool own_y = false;      // but y and dy are in the convolution's own number (is_bf16)
  };

  // Tries the precision, then more exact ones, then loops of ours, which those in groups have
  // anyway. RESOURCE_EXHAUSTED, INTERNAL.
  static absl::StatusOr<std::unique_ptr<PreparedConvolution>> Make(CudaBackend* backend,
                                                                   const ConvolutionLayout& layout,
                                                                   const Options& options);
  ~PreparedConvolution();
  PreparedConvolution(const PreparedConvolution&) = delete;
  PreparedConvolution& operator=(const PreparedConvolution&) = delete;

  const ConvolutionLayout& layout() const { return layout_; }
  // Whether the convolution's own number is Bfloat16; else float.
  bool is_bf16() const {
    return is_direct_ ? options_.bf16_maps : precision_ == Precision::kBfloat16;
  }
  // Of the memory that each of the passes needs while it runs.
  size_t scratch_bytes() const { return scratch_.bytes(); }

  void WeightsChanged() { is_packed_ = false; }
  void Forward(void* x, float* w, void* y, void* scratch);
  void PlanNormalised(bool relu);
  // y with batch norm and ReLU in the convolution's epilogue. False: not planned or not offered, y
  // is as it was.
  bool ForwardNormalised(void* x, float* w, const ChannelTerms& channels, void* y, void* scratch);
  // The forward pass of a block: Epilogue::kLeakyPool. INVALID_ARGUMENT: not offered.
  absl::Status PlanPooled(double slope);
  // y and code as Backend::PoolForward has them, y in the convolution's own number. Only if
  // planned.
  void ForwardPooled(void* x, float* w, const float* bias, void* y, uint8_t* code, void* scratch);
  void BackwardData(void* dy, float* w, void* dx, void* scratch);
  void BackwardWeights(void* x, void* dy, float* dw, void* scratch);

 private:
  struct Plans {
    std::unique_ptr<ConvolutionPlan> forward, data, weights;
  };

  PreparedConvolution(CudaBackend* backend, const ConvolutionLayout& layout, const Options& options)
      : backend_(backend), layout_(layout), options_(options) {}
  absl::Status Choose();
  absl::Status MakePlans(Precision precision, Plans* plans) const;
  absl::Status PlanMemory();
  template <typename T>
  void RunDirect(void* x, float* w, const ChannelTerms& channels, void* y);
  template <typename T>
  void SumTaps(void* x, void* dy, float* dw);
  void Pack(float* w);
  template <typename T>
  void PackAs(float* w);
  template <typename T>
  void UnpackAs(const void* gradient, float* dw);
  bool converts_y() const { return !options_.own_y && options_.bf16_maps != is_bf16(); }
  void* Input(void* x, void* scratch);
  void* OwnGradient(void* dy, void* scratch);
  void* OwnResult(void* y, void* scratch) const;
  void Unload(void* own, void* y);
  void Call(const ConvolutionCall& call, void* scratch);

  CudaBackend* const backend_;
  const ConvolutionLayout layout_;
  const Options options_;
  Precision precision_ = Precision::kFloat32;
  bool is_direct_ = false;
  Plans plans_;
  // The forward pass with an epilogue; null: not planned, or the library has none.
  std::unique_ptr<ConvolutionPlan> normalised_, normalised_relu_, pooled_;
  ScratchPlan scratch_;
  size_t input_offset_ = 0;      // in scratch: x or dx as cuDNN has it, if that is another
  size_t result_offset_ = 0;     // in scratch: y or dy as cuDNN has it, if that is another
  size_t gradient_offset_ = 0;   // in scratch: dw as cuDNN has it
  size_t factor_offset_ = 0;     // in scratch: an epilogue's factors
  size_t addend_offset_ = 0;     // in scratch: and addends
  size_t workspace_offset_ = 0;  // in scratch: the library's own
  size_t workspace_bytes_ = 0;
  void* packed_ = nullptr;  // w as cuDNN has it
  bool is_packed_ = false;
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_PREPARED_CONVOLUTION_H_
