#include "worker/engine/backends/cuda/cuda_pointwise.h"

#include <cstddef>
#include <type_traits>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "worker/engine/backends/cuda/map_extents.h"
#include "worker/engine/backends/cuda/plan.h"

namespace assay::cuda {
namespace {

// T: of maps, and of the weights that the library reads.
template <typename T>
class PointwiseConvolution : public Convolution {
 public:
  PointwiseConvolution(CudaBackend* backend, const Conv2dShape& shape, void* bf16_weights)
      : backend_(backend), shape_(shape), bf16_weights_(bf16_weights) {
    const auto weights = static_cast<size_t>(shape.w().elements());
    folded_offset_ = scratch_.Add(weights * sizeof(T));
    addend_offset_ = scratch_.Add(static_cast<size_t>(shape.out_channels) * sizeof(T));
  }
  ~PointwiseConvolution() override { backend_->Free(bf16_weights_); }
  PointwiseConvolution(const PointwiseConvolution&) = delete;
  PointwiseConvolution& operator=(const PointwiseConvolution&) = delete;

  size_t scratch_bytes() const { return scratch_.bytes(); }
  void WeightsChanged() override { is_cast_ = false; }

  void Forward(const Tensor& x, const Tensor& w, const Tensor& y) override {
    CheckShapes(x, w, y);
    backend_->Issue("convolution", backend_->Product(false, false, AsMatrix(x), Weights(w),
                                                     AsMatrix(y), Numbers()));
  }

  bool ForwardNormalised(const Tensor& x, const Tensor& w, const Normalisation& n,
                         const Tensor& y) override {
    CheckShapes(x, w, y);
    T* const folded = InScratch(folded_offset_);
    T* const addend = InScratch(addend_offset_);
    backend_->Run("fold statistics", FoldWeights<T>{.w = w.As<float>(),
                                                    .channels = TermsOf(n, y),
                                                    .folded = folded,
                                                    .addend = addend,
                                                    .columns = shape_.out_channels,
                                                    .count = w.elements()});
    MatmulCall product =
        backend_->Product(false, false, AsMatrix(x), AsWeights(folded), AsMatrix(y), Numbers());
    product.bias = addend;
    product.relu = n.relu;
    backend_->Issue("convolution", product);
    return true;
  }

  void BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) override {
    CheckShapes(dx, w, dy);
    backend_->Issue("convolution", backend_->Product(false, true, AsMatrix(dy), Weights(w),
                                                     AsMatrix(dx), Numbers()));
  }

  void BackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) override {
    CheckShapes(x, dw, dy);
    const Tensor gradient = dw.Reshaped({shape_.in_channels, shape_.out_channels});
    const ProductNumbers numbers = kIsBf16 ? ProductNumbers::kBfloat16Factors : Numbers();
    backend_->Issue("convolution",
                    backend_->Product(true, false, AsMatrix(x), AsMatrix(dy), gradient, numbers));
  }

 private:
  static constexpr bool kIsBf16 = std::is_same_v<T, Bfloat16>;

  ProductNumbers Numbers() const {
    return kIsBf16 ? ProductNumbers::kBfloat16 : backend_->numbers();
  }
  T* InScratch(size_t offset) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(backend_->scratch()) + offset);
  }
  Tensor AsWeights(void* data) const {
    return {data, {shape_.in_channels, shape_.out_channels}, DTypeOf<T>()};
  }

  // Weights are cast to bfloat16 once per update.
  Tensor Weights(const Tensor& w) {
    if constexpr (kIsBf16) {
      if (!std::exchange(is_cast_, true))
        backend_->Run("cast to bfloat16",
                      Convert<float, Bfloat16>{w.As<float>(), static_cast<Bfloat16*>(bf16_weights_),
                                               w.elements()});
      return AsWeights(bf16_weights_);
    } else {
      return AsWeights(w.As<float>());
    }
  }

  void CheckShapes(const Tensor& x, const Tensor& w, const Tensor& y) const {
    CHECK(x.shape == shape_.x() && w.shape == shape_.w() && y.shape == shape_.y());
    CHECK(x.dtype == DTypeOf<T>() && y.dtype == DTypeOf<T>()) << "x=" << x.shape.ToString();
  }

  CudaBackend* const backend_;
  const Conv2dShape shape_;
  void* const bf16_weights_;  // null where T is float
  bool is_cast_ = false;
  ScratchPlan scratch_;
  size_t folded_offset_ = 0, addend_offset_ = 0;
};

template <typename T>
absl::StatusOr<std::unique_ptr<Convolution>> Make(CudaBackend* backend, const Conv2dShape& shape) {
  void* bf16_weights = nullptr;
  if constexpr (std::is_same_v<T, Bfloat16>) {
    const auto weights = static_cast<size_t>(shape.w().elements());
    ASSIGN_OR_RETURN(bf16_weights, backend->Allocate(weights * sizeof(Bfloat16)));
  }
  auto convolution = std::make_unique<PointwiseConvolution<T>>(backend, shape, bf16_weights);
  RETURN_IF_ERROR(backend->ReserveScratch(convolution->scratch_bytes()));
  return convolution;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Convolution>> MakeCudaPointwise(CudaBackend* backend,
                                                               const Conv2dShape& shape) {
  return backend->map_type() == DType::kBfloat16 ? Make<Bfloat16>(backend, shape)
                                                 : Make<float>(backend, shape);
}

}  // namespace assay::cuda
