#include "worker/engine/backend.h"

#include <utility>

#include "common/status.h"

namespace assay {
namespace {

// Convolution and pooling one after the other; the unpooled tensor lies in scratch.
class ComposedConvPool : public ConvPool {
 public:
  ComposedConvPool(Backend* backend, const ConvPoolShape& shape,
                   std::unique_ptr<Convolution> convolution)
      : backend_(backend), shape_(shape), convolution_(std::move(convolution)) {}

  size_t scratch_bytes() const override { return Unpooled(nullptr).bytes(); }
  void WeightsChanged() override { convolution_->WeightsChanged(); }

  void Forward(const ConvPoolTensors& t) override {
    const Tensor unpooled = Unpooled(t.scratch);
    convolution_->Forward(t.x, t.w, unpooled);
    backend_->PoolForward(unpooled, t.bias, shape_.slope, t.y, t.code);
  }

  void Backward(const ConvPoolTensors& t, const Tensor& dy, const ConvPoolGradients& g) override {
    const Tensor unpooled = Unpooled(t.scratch);
    backend_->PoolBackward(dy, t.code, shape_.slope, unpooled, g.dbias);
    convolution_->BackwardWeights(t.x, unpooled, g.dw);
    if (g.dx.data != nullptr) convolution_->BackwardData(unpooled, t.w, g.dx);
  }

 private:
  Tensor Unpooled(void* scratch) const { return {scratch, shape_.conv.y(), backend_->real()}; }

  Backend* const backend_;
  const ConvPoolShape shape_;
  const std::unique_ptr<Convolution> convolution_;
};

}  // namespace

ConvShape SameConv(int64_t batch, std::array<int64_t, 3> input, int64_t in_channels,
                   int64_t out_channels, int64_t kernel) {
  const int64_t before = (kernel - 1) / 2, after = kernel / 2;
  return {.batch = batch,
          .input = input,
          .in_channels = in_channels,
          .out_channels = out_channels,
          .kernel = kernel,
          .pad_before = {before, before, before},
          .pad_after = {after, after, after}};
}

void Backend::TakeBox(const Tensor& whole, const Box& box, const Tensor& packed) {
  ForEachRun(whole, box, packed,
             [this](const Tensor& part, const Tensor& run) { Copy(part, run); });
}

void Backend::PutBox(const Tensor& packed, const Box& box, const Tensor& whole) {
  ForEachRun(whole, box, packed,
             [this](const Tensor& part, const Tensor& run) { Copy(run, part); });
}

absl::StatusOr<std::unique_ptr<ConvPool>> Backend::MakeConvPool(const ConvPoolShape& shape) {
  ASSIGN_OR_RETURN(std::unique_ptr<Convolution> convolution, MakeConvolution(shape.conv));
  return std::make_unique<ComposedConvPool>(this, shape, std::move(convolution));
}

}  // namespace assay
