// A convolution of kernel 3 by Winograd's algorithm (Lavin and Gray, "Fast algorithms for
// convolutional neural networks", 2016) as oneDNN has it: outputs in tiles of 4x4, a quarter of the
// multiplications.
//
// Two to three times as fast as its direct kernels from some dozen channels on, in all three passes
// (docs/adr/0131-winograd.md). oneDNN has it for its own blocked layout only, so tensors are copied
// into that and back. Errors are about four times those of direct sums, some units of float32's
// last place.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_WINOGRAD_CONVOLUTION_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_WINOGRAD_CONVOLUTION_H_

#include <array>
#include <cstddef>
#include <memory>

#include "worker/engine/maps.h"
#include <oneapi/dnnl/dnnl.hpp>

namespace assay {

// Memory that the convolutions of a backend share, because it holds nothing between operations.
// Grows when asked for more. Not thread-safe.
class WinogradMemory {
 public:
  enum Place : size_t { kX, kY, kScratch };

  explicit WinogradMemory(const dnnl::engine& engine) : engine_(engine) {}

  // Makes room at a place. Throws dnnl::error without memory.
  void Reserve(Place place, size_t bytes);
  // A tensor that lies there.
  dnnl::memory View(Place place, const dnnl::memory::desc& desc) const;

 private:
  struct Bytes {
    dnnl::memory memory;
    size_t count = 0;
  };

  dnnl::engine engine_;
  std::array<Bytes, 3> places_;
};

class WinogradConvolution : public Convolution {
 public:
  // Null where the shape is another kind of convolution, or too small, or the library has no such
  // kernel here. `memory` must outlive it. Throws dnnl::error without memory.
  static std::unique_ptr<WinogradConvolution> Make(const Conv2dShape& shape,
                                                   const dnnl::stream& stream,
                                                   WinogradMemory* memory);

  void WeightsChanged() override;
  void Forward(const Tensor& x, const Tensor& w, const Tensor& y) override;
  void BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) override;
  void BackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) override;

 private:
  // One pass with its weights, or their gradient, in the order that it wants.
  struct Pass {
    dnnl::primitive primitive;
    dnnl::memory::desc scratch;
    dnnl::memory weights;
    dnnl::reorder reorder;  // between `weights` and ours
    bool is_current = false;
  };
  // A tensor of ours, (B, H, W, C), and the way to and from the library's layout.
  struct Map {
    dnnl::memory plain;  // a view
    dnnl::memory::desc blocked;
    dnnl::reorder in, out;
  };
  struct Plans;

  WinogradConvolution(const Conv2dShape& shape, const Plans& plans, const dnnl::stream& stream,
                      WinogradMemory* memory);
  dnnl::memory Import(const Tensor& tensor, WinogradMemory::Place place, Map* map);
  void Export(const dnnl::memory& blocked, const Tensor& tensor, Map* map);
  void Pack(const Tensor& w, Pass* pass);
  dnnl::memory Scratch(const Pass& pass) const;

  const Conv2dShape shape_;
  dnnl::stream stream_;
  WinogradMemory* const memory_;
  Map x_, y_;
  dnnl::memory w_;  // a view
  Pass forward_, backward_data_, backward_weights_;
};

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_WINOGRAD_CONVOLUTION_H_
