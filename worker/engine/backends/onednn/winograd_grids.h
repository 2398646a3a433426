// The evaluation of a dilated convolution of kernel 3 by Winograd's algorithm.
//
// Pixels that lie a dilation apart form a grid, and the convolution is a dense one on each of them.
// As winograd_convolution.h, but for evaluation alone: weights are transformed when they change and
// not in each pass, and pixels are normalised on their way back into the map.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_WINOGRAD_GRIDS_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_WINOGRAD_GRIDS_H_

#include <cstdint>
#include <memory>

#include "worker/engine/backends/onednn/fixed_scale.h"
#include "worker/engine/backends/onednn/winograd_convolution.h"
#include "worker/engine/maps.h"
#include <oneapi/dnnl/dnnl.hpp>

namespace assay {

class WinogradGrids {
 public:
  // Null where the shape is another kind of convolution, where the grids fill too little of the
  // tiles to be faster than direct sums, or where the library has no such kernel. `memory` must
  // outlive it. Throws dnnl::error without memory.
  static std::unique_ptr<WinogradGrids> Make(const Conv2dShape& shape, const dnnl::stream& stream,
                                             WinogradMemory* memory);

  void WeightsChanged() { is_packed_ = false; }
  // As Convolution::ForwardNormalised. An error of oneDNN ends the process with
  // ExitCode::kBackend.
  void Run(const Tensor& x, const Tensor& w, const Normalisation& n, const Tensor& y);

 private:
  using Plan = dnnl::convolution_forward::primitive_desc;

  WinogradGrids(const Conv2dShape& shape, const Plan& plan, const dnnl::stream& stream,
                WinogradMemory* memory);
  void Gather(const float* x, float* grids) const;
  void Scatter(const float* grids, const FixedScale& scale, bool relu, float* y) const;

  const Conv2dShape shape_;
  const int64_t height_, width_;  // of a grid
  dnnl::stream stream_;
  WinogradMemory* const memory_;
  dnnl::memory::desc x_, y_, scratch_;
  dnnl::convolution_forward convolution_;
  dnnl::memory plain_, packed_;  // weights; plain_ is a view
  dnnl::reorder pack_;
  bool is_packed_ = false;
};

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_WINOGRAD_GRIDS_H_
