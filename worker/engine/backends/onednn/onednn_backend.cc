#include "worker/engine/backends/onednn/onednn_backend.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/log.h"
#include "common/status.h"
#include "worker/engine/backends/onednn/avx512_bf16.h"
#include "worker/engine/backends/onednn/bf16_conv_pool.h"
#include "worker/engine/backends/onednn/gemm.h"
#include "worker/engine/backends/onednn/kernels.h"
#include "worker/engine/backends/onednn/map_kernels.h"
#include "worker/engine/backends/onednn/onednn_convolution.h"
#include "worker/engine/backends/onednn/onednn_error.h"
#include "worker/engine/backends/onednn/onednn_maps.h"
#include "worker/engine/backends/onednn/optimizer_kernels.h"
#include "worker/engine/backends/onednn/sparse_conv_pool.h"
#include "worker/engine/backends/reference/reference_backend.h"
#include <oneapi/dnnl/dnnl.hpp>

namespace assay {
namespace {

// ln(count + 1) for every int16, indexed by its bits as unsigned.
std::vector<float> LogTable() {
  std::vector<float> table(size_t{1} << 16);
  for (size_t i = 0; i < table.size(); ++i)
    table[i] = static_cast<float>(std::log(static_cast<double>(static_cast<int16_t>(i)) + 1.0));
  return table;
}

// Whether the vector kernels can pool `x`: (B, D, H, W, C).
bool IsVectorPool(const Shape& x) {
  return x[1] % 2 == 0 && x[2] % 2 == 0 && x[3] % 2 == 0 && x[4] % kPoolLanes == 0;
}

PoolExtents ExtentsOf(const Shape& x) {
  return {x[0], x[1] / 2, x[2] / 2, x[3] / 2, x[4]};
}

constexpr size_t kLine = 64;  // a cache line, and a vector
constexpr size_t kLargePage = size_t{2} << 20;

// From so many rows on, a bias belongs to a map; dense layers have a row for each sample.
constexpr int64_t kMapRows = 1024;

bool IsMapActivation(const Tensor& y, const Activation& f) {
  return f.kind == Activation::Kind::kLeakyRelu && y.shape[0] >= kMapRows;
}

class OnednnBackend : public ReferenceBackend<float> {
 public:
  explicit OnednnBackend(OnednnFactors factors)
      : engine_(dnnl::engine::kind::cpu, 0),
        stream_(engine_),
        factors_(factors),
        log_table_(LogTable()),
        maps_(engine_, stream_) {}

  absl::string_view name() const override {
    return factors_ == OnednnFactors::kFloat32 ? "onednn" : "onednn-bf16";
  }
  // None in bfloat16: it does not pay there (ADR 0256).
  MapOperations* maps() override { return factors_ == OnednnFactors::kFloat32 ? &maps_ : nullptr; }
  AdaptiveOperations* adaptive() override { return &adaptive_; }

  // What is large lies on large pages if the system gives them: there is less to translate.
  absl::StatusOr<void*> Allocate(size_t bytes) override {
    const size_t alignment = bytes < 4 * kLargePage ? kLine : kLargePage;
    const size_t size = (bytes + alignment - 1) / alignment * alignment;
    void* const memory = size < bytes ? nullptr : std::aligned_alloc(alignment, size);
    if (memory == nullptr)
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot allocate ", bytes, " bytes for the model; reduce the batch"));
    if (alignment == kLargePage) static_cast<void>(madvise(memory, size, MADV_HUGEPAGE));
    std::memset(memory, 0, bytes);
    return memory;
  }
  void Free(void* memory) override { std::free(memory); }
  void Copy(const Tensor& src, const Tensor& dst) override {
    CHECK(src.bytes() == dst.bytes());
    CopyKernel(src.data, src.bytes(), dst.data);
  }

  void Synchronize() override {
    MustOnednn("wait", [&] { stream_.wait(); });
  }

  void Log1p(const Tensor& counts, const Tensor& y) override {
    CHECK(counts.shape == y.shape);
    LookUpKernel(log_table_.data(), counts.Span<int16_t>(), y.As<float>());
  }

  absl::StatusOr<std::unique_ptr<Convolution>> MakeConvolution(const ConvShape& shape) override {
    ASSIGN_OR_RETURN(std::unique_ptr<OnednnConvolution> convolution,
                     OnednnConvolution::Make(shape, engine_, stream_));
    return convolution;
  }

  absl::StatusOr<std::unique_ptr<ConvPool>> MakeConvPool(const ConvPoolShape& shape) override {
    if (factors_ == OnednnFactors::kBfloat16 && Bf16ConvPool::CanDo(shape)) {
      ASSIGN_OR_RETURN(std::unique_ptr<Bf16ConvPool> block,
                       Bf16ConvPool::Make(shape, engine_, stream_));
      return block;
    }
    if (!SparseConvPool::CanDo(shape)) return Backend::MakeConvPool(shape);
    ASSIGN_OR_RETURN(std::unique_ptr<SparseConvPool> block,
                     SparseConvPool::Make(shape, engine_, stream_));
    return block;
  }

  void PoolForward(const Tensor& x, const Tensor& bias, double slope, const Tensor& y,
                   const Tensor& code) override {
    if (!IsVectorPool(x.shape)) return ReferenceBackend::PoolForward(x, bias, slope, y, code);
    CHECK(y.shape == code.shape && y.elements() * 8 == x.elements());
    PoolForwardKernel(ExtentsOf(x.shape), x.As<float>(), bias.As<float>(),
                      static_cast<float>(slope), y.As<float>(), code.As<uint8_t>());
  }

  void PoolBackward(const Tensor& dy, const Tensor& code, double slope, const Tensor& dx,
                    const Tensor& dbias) override {
    if (!IsVectorPool(dx.shape)) return ReferenceBackend::PoolBackward(dy, code, slope, dx, dbias);
    CHECK(dy.shape == code.shape && dy.elements() * 8 == dx.elements());
    PoolBackwardKernel(ExtentsOf(dx.shape), dy.As<float>(), code.As<uint8_t>(),
                       static_cast<float>(slope), dx.As<float>(), dbias.As<float>());
  }

  void DenseForward(const Tensor& x, const Tensor& w, const Tensor& y) override {
    const int64_t rows = x.shape[0], in = w.shape[0], out = w.shape[1];
    CHECK(x.shape == Shape({rows, in}) && y.shape == Shape({rows, out}));
    Gemm{false, false, rows, out, in}.Run(x.As<float>(), w.As<float>(), y.As<float>());
  }

  void DenseBackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) override {
    const int64_t rows = dy.shape[0], in = w.shape[0], out = w.shape[1];
    CHECK(dx.shape == Shape({rows, in}) && dy.shape == Shape({rows, out}));
    Gemm{false, true, rows, in, out}.Run(dy.As<float>(), w.As<float>(), dx.As<float>());
  }

  void DenseBackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) override {
    const int64_t rows = dy.shape[0], in = dw.shape[0], out = dw.shape[1];
    CHECK(x.shape == Shape({rows, in}) && dy.shape == Shape({rows, out}));
    Gemm{true, false, in, out, rows}.Run(x.As<float>(), dy.As<float>(), dw.As<float>());
  }

  void ActivationForward(const Tensor& y, const Tensor& bias, const Activation& f) override {
    if (!IsMapActivation(y, f)) return ReferenceBackend::ActivationForward(y, bias, f);
    CHECK(bias.elements() == y.shape[1]);
    BiasKernel({y.shape[0], y.shape[1]}, bias.As<float>(), static_cast<float>(f.parameter),
               y.As<float>());
  }

  void ActivationBackward(const Tensor& y, const Activation& f, const Tensor& dy,
                          const Tensor& dbias) override {
    if (!IsMapActivation(y, f)) return ReferenceBackend::ActivationBackward(y, f, dy, dbias);
    CHECK(y.shape == dy.shape && dbias.elements() == y.shape[1]);
    const std::vector<double> sums = BiasBackwardKernel(
        {y.shape[0], y.shape[1]}, y.As<float>(), static_cast<float>(f.parameter), dy.As<float>());
    std::transform(sums.begin(), sums.end(), dbias.As<float>(),
                   [](double sum) { return static_cast<float>(sum); });
  }

  void SumOfSquares(const Tensor& x, const Tensor& sum) override {
    sum.As<float>()[0] = static_cast<float>(SumOfSquaresKernel(x.Span<float>()));
  }

  void Sgd(const SgdStep& step, const Tensor& parameters, const Tensor& gradients,
           const Tensor& velocity) override {
    CHECK(parameters.elements() == gradients.elements());
    CHECK(parameters.elements() == velocity.elements());
    SgdKernel(step, parameters.Span<float>(), gradients.As<float>(), velocity.As<float>());
  }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  const OnednnFactors factors_;
  const std::vector<float> log_table_;
  OnednnMaps maps_;
  OnednnAdaptive adaptive_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeOnednnBackend(OnednnFactors factors) {
  if (factors == OnednnFactors::kBfloat16) RETURN_IF_ERROR(RequireAvx512Bf16());
  std::unique_ptr<Backend> backend;
  const absl::Status status =
      CatchOnednn("engine", [&] { backend = std::make_unique<OnednnBackend>(factors); });
  if (!status.ok()) return absl::UnavailableError(status.message());
  return backend;
}

}  // namespace assay
