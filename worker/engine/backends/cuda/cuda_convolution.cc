#include "worker/engine/backends/cuda/cuda_convolution.h"

#include <algorithm>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "worker/engine/backends/cuda/map_extents.h"
#include "worker/engine/backends/cuda/plan.h"
#include "worker/engine/backends/cuda/prepared_convolution.h"

namespace assay::cuda {
namespace {

// Works in the backend's scratch memory.
class CudaConvolution : public Convolution {
 public:
  // `maps`: the type of x, y and their gradients.
  CudaConvolution(CudaBackend* backend, DType maps,
                  std::unique_ptr<PreparedConvolution> convolution)
      : backend_(backend), maps_(maps), convolution_(std::move(convolution)) {}

  void WeightsChanged() override { convolution_->WeightsChanged(); }

  void Forward(const Tensor& x, const Tensor& w, const Tensor& y) override {
    CheckShapes(x, w, y);
    convolution_->Forward(x.data, w.As<float>(), y.data, backend_->scratch());
  }

  void PlanNormalised(bool relu) override { convolution_->PlanNormalised(relu); }

  bool ForwardNormalised(const Tensor& x, const Tensor& w, const Normalisation& n,
                         const Tensor& y) override {
    CheckShapes(x, w, y);
    return convolution_->ForwardNormalised(x.data, w.As<float>(), TermsOf(n, y), y.data,
                                           backend_->scratch());
  }

  void BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) override {
    CheckShapes(dx, w, dy);
    convolution_->BackwardData(dy.data, w.As<float>(), dx.data, backend_->scratch());
  }

  void BackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) override {
    CheckShapes(x, dw, dy);
    convolution_->BackwardWeights(x.data, dy.data, dw.As<float>(), backend_->scratch());
  }

 private:
  void CheckShapes(const Tensor& x, const Tensor& w, const Tensor& y) const {
    const ConvolutionLayout& layout = convolution_->layout();
    CHECK(x.shape == layout.x && w.shape == layout.w && y.shape == layout.y);
    CHECK(x.dtype == maps_ && y.dtype == maps_) << "x=" << x.shape.ToString();
  }

  CudaBackend* const backend_;
  const DType maps_;
  const std::unique_ptr<PreparedConvolution> convolution_;
};

// The unpooled tensor lies in scratch, in the convolution's number, and only during a pass.
class CudaConvPool : public ConvPool {
 public:
  CudaConvPool(CudaBackend* backend, const ConvPoolShape& shape,
               std::unique_ptr<PreparedConvolution> convolution)
      : backend_(backend), shape_(shape), convolution_(std::move(convolution)) {
    const size_t number = convolution_->is_bf16() ? sizeof(Bfloat16) : sizeof(float);
    unpooled_offset_ = scratch_.Add(static_cast<size_t>(shape.conv.y().elements()) * number);
    convolution_offset_ = scratch_.Add(convolution_->scratch_bytes());
  }

  // Computes the forward pass in one call where y is a map. INVALID_ARGUMENT: not offered.
  absl::Status Fuse() {
    RETURN_IF_ERROR(convolution_->PlanPooled(shape_.slope));
    is_fused_ = true;
    return absl::OkStatus();
  }

  size_t scratch_bytes() const override { return scratch_.bytes(); }
  void WeightsChanged() override { convolution_->WeightsChanged(); }

  void Forward(const ConvPoolTensors& t) override {
    CHECK(t.x.shape == shape_.x() && t.y.shape == shape_.y() && t.code.shape == shape_.y());
    if (is_fused_ && t.y.dtype == DType::kBfloat16) {
      convolution_->ForwardPooled(t.x.data, t.w.As<float>(), t.bias.As<float>(), t.y.data,
                                  t.code.As<uint8_t>(), Scratch(t));
      return;
    }
    const Tensor unpooled = Unpooled(t);
    convolution_->Forward(t.x.data, t.w.As<float>(), unpooled.data, Scratch(t));
    backend_->PoolForward(unpooled, t.bias, shape_.slope, t.y, t.code);
  }

  void Backward(const ConvPoolTensors& t, const Tensor& dy, const ConvPoolGradients& g) override {
    const Tensor unpooled = Unpooled(t);
    backend_->PoolBackward(dy, t.code, shape_.slope, unpooled, g.dbias);
    convolution_->BackwardWeights(t.x.data, unpooled.data, g.dw.As<float>(), Scratch(t));
    if (g.dx.data != nullptr)
      convolution_->BackwardData(unpooled.data, t.w.As<float>(), g.dx.data, Scratch(t));
  }

 private:
  Tensor Unpooled(const ConvPoolTensors& t) const {
    return {static_cast<std::byte*>(t.scratch) + unpooled_offset_, shape_.conv.y(),
            convolution_->is_bf16() ? DType::kBfloat16 : DType::kFloat32};
  }
  void* Scratch(const ConvPoolTensors& t) const {
    return static_cast<std::byte*>(t.scratch) + convolution_offset_;
  }

  CudaBackend* const backend_;
  const ConvPoolShape shape_;
  const std::unique_ptr<PreparedConvolution> convolution_;
  ScratchPlan scratch_;
  bool is_fused_ = false;
  size_t unpooled_offset_ = 0;
  size_t convolution_offset_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Convolution>> MakeCudaConvolution(CudaBackend* backend,
                                                                 const ConvolutionLayout& layout,
                                                                 DType maps) {
  const bool is_bf16 = maps == DType::kBfloat16;
  const Precision most = is_bf16 ? Precision::kBfloat16 : Precision::kTf32;
  ASSIGN_OR_RETURN(std::unique_ptr<PreparedConvolution> convolution,
                   PreparedConvolution::Make(backend, layout,
                                             {.precision = std::min(backend->precision(), most),
                                              .wants_dx = true,
                                              .bf16_maps = is_bf16}));
  RETURN_IF_ERROR(backend->ReserveScratch(convolution->scratch_bytes()));
  return std::make_unique<CudaConvolution>(backend, maps, std::move(convolution));
}

absl::StatusOr<std::unique_ptr<ConvPool>> MakeCudaConvPool(CudaBackend* backend,
                                                           const ConvPoolShape& shape) {
  ASSIGN_OR_RETURN(std::unique_ptr<PreparedConvolution> convolution,
                   PreparedConvolution::Make(
                       backend, LayoutOf(shape.conv, shape.empty_channels),
                       {.precision = backend->precision(),
                        .wants_dx = shape.wants_dx,
                        .bf16_maps = shape.is_map && backend->map_type() == DType::kBfloat16,
                        .own_y = true}));
  auto block = std::make_unique<CudaConvPool>(backend, shape, std::move(convolution));
  if (backend->FusesBlocks() && shape.is_map) {
    const absl::Status status = block->Fuse();
    if (!status.ok())
      LOG(INFO) << "backend=cuda x=" << shape.x().ToString()
                << ": not in one call, refused=" << Quoted(status);
  }
  return block;
}

}  // namespace assay::cuda
