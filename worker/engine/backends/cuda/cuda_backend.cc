#include "worker/engine/backends/cuda/cuda_backend.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"
#include "worker/engine/backends/cuda/cuda_convolution.h"
#include "worker/engine/backends/cuda/fault.h"
#include "worker/engine/backends/cuda/map_extents.h"
#include "worker/engine/backends/cuda/plan.h"
#include "worker/engine/backends/cuda/pooled_trial.h"

namespace assay::cuda {
namespace {

constexpr size_t kLeastScratch = 256;  // for single numbers
constexpr size_t kLogTableSize = size_t{std::numeric_limits<uint16_t>::max()} + 1;

// ln(count + 1) for each count, at its unsigned value: the same bits as on the CPU.
std::vector<float> LogTable() {
  std::vector<float> table(kLogTableSize);
  for (size_t i = 0; i < table.size(); ++i) {
    const auto count = static_cast<int16_t>(static_cast<uint16_t>(i));
    table[i] = static_cast<float>(std::log(static_cast<double>(count) + 1.0));
  }
  return table;
}

Shape PooledShape(const Shape& x) {
  return {x[0], x[1] / 2, x[2] / 2, x[3] / 2, x[4]};
}

// Calls visit(A(), B()) with the numbers of both.
template <typename Visit>
void WithNumbers(const Tensor& a, const Tensor& b, const Visit& visit) {
  const auto with_a = [&](auto number) {
    b.dtype == DType::kBfloat16 ? visit(number, Bfloat16()) : visit(number, float());
  };
  a.dtype == DType::kBfloat16 ? with_a(Bfloat16()) : with_a(float());
}

Inset InsetOf(const Tensor& whole, const Box& box, const Tensor& packed) {
  const Shape& outer = whole.shape;
  CHECK(packed.elements() == box.elements(outer))
      << "packed=" << packed.shape.ToString() << " whole=" << outer.ToString();
  return {.depth = box.extent[0],
          .height = box.extent[1],
          .width = outer[3],
          .channels = outer[4],
          .outer_depth = outer[1],
          .outer_height = outer[2],
          .outer_width = outer[3],
          .before_depth = box.begin[0],
          .before_height = box.begin[1],
          .before_width = 0};
}

Curve CurveOf(const Activation& f) {
  return f.kind == Activation::Kind::kLeakyRelu ? Curve::kLeakyRelu : Curve::kScaledTanh;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaBackend>> CudaBackend::Make(std::unique_ptr<Device> device,
                                                               const CudaOptions& options) {
  std::unique_ptr<CallTrace> trace;
  if (!options.trace_path.empty()) {
    ASSIGN_OR_RETURN(trace, CallTrace::Open(options.trace_path));
  }
  std::unique_ptr<CudaBackend> backend(
      new CudaBackend(std::move(device), options, std::move(trace)));
  RETURN_IF_ERROR(backend->Prepare());
  return backend;
}

CudaBackend::CudaBackend(std::unique_ptr<Device> device, const CudaOptions& options,
                         std::unique_ptr<CallTrace> trace)
    : device_(std::move(device)),
      options_(options),
      trace_(std::move(trace)),
      recorder_(device_.get(), {.is_call_by_call = options.is_call_by_call, .trace = trace_.get()}),
      engines_(device_.get(), options.engines),
      ranks_(device_.get(), &recorder_),
      copier_(device_.get(), &recorder_),
      maps_(this),
      adaptive_(this) {}

CudaBackend::~CudaBackend() {
  adaptive_.Release();
  Free(log_table_);
  Free(partials_);
  Free(scratch_);
}

absl::Status CudaBackend::Prepare() {
  const std::vector<float> table = LogTable();
  ASSIGN_OR_RETURN(log_table_, Allocate(table.size() * sizeof(float)));
  ASSIGN_OR_RETURN(partials_, Allocate(kMaxFoldSums * sizeof(Pair)));
  RETURN_IF_ERROR(ReserveScratch(kLeastScratch));
  return ToStatus("copy a table",
                  device_->CopyIn(table.data(), log_table_, table.size() * sizeof(float)));
}

absl::StatusOr<void*> CudaBackend::Allocate(size_t bytes) {
  void* memory = nullptr;
  const Fault fault = device_->Allocate(bytes, &memory);
  if (fault.ok()) return memory;
  return ToStatus(absl::StrCat("allocate ", bytes, " bytes"), fault);
}

void CudaBackend::Free(void* memory) {
  if (memory != nullptr) device_->Free(memory);
}

void CudaBackend::CopyIn(const void* host, const Tensor& dst) {
  Must("flush", recorder_.Flush());
  Must("copy in", device_->CopyIn(host, dst.data, dst.bytes()));
}

void CudaBackend::CopyOut(const Tensor& src, void* host) {
  Must("flush", recorder_.Flush());
  Must("copy out", device_->CopyOut(src.data, host, src.bytes()));
}

void CudaBackend::Copy(const Tensor& src, const Tensor& dst) {
  CHECK(src.bytes() == dst.bytes());
  Issue("copy", CopyCall{.from = src.data, .to = dst.data, .bytes = src.bytes()});
}

void CudaBackend::TakeBox(const Tensor& whole, const Box& box, const Tensor& packed) {
  Run("take a box", Crop{.x = whole.As<float>(),
                         .y = packed.As<float>(),
                         .inset = InsetOf(whole, box, packed),
                         .count = packed.elements()});
}

void CudaBackend::PutBox(const Tensor& packed, const Box& box, const Tensor& whole) {
  Run("put a box", Insert{.x = packed.As<float>(),
                          .y = whole.As<float>(),
                          .inset = InsetOf(whole, box, packed),
                          .count = packed.elements()});
}

void CudaBackend::Synchronize() {
  Must("flush", recorder_.Flush());
  Must("wait", device_->Wait());
}

void CudaBackend::BeginSection(int key) {
  Must("begin a section", recorder_.Begin(key));
}

void CudaBackend::EndSection() {
  Must("end a section", recorder_.End());
}

void CudaBackend::Issue(absl::string_view what, const Call& call) {
  Must(what, recorder_.Issue(call));
}

absl::Status CudaBackend::ReserveScratch(size_t bytes) {
  if (bytes <= scratch_bytes_) return absl::OkStatus();
  Free(std::exchange(scratch_, nullptr));
  scratch_bytes_ = 0;
  ASSIGN_OR_RETURN(scratch_, Allocate(bytes));
  scratch_bytes_ = bytes;
  return absl::OkStatus();
}

void CudaBackend::Log1p(const Tensor& counts, const Tensor& y) {
  const auto* const table = static_cast<const float*>(log_table_);
  if (y.dtype == DType::kFloat32) {
    CHECK(counts.shape == y.shape);
    Run("log1p", LookUp{.table = table,
                        .counts = counts.As<int16_t>(),
                        .y = y.As<float>(),
                        .count = y.elements()});
    return;
  }
  const int64_t places = counts.elements() / kCountChannels;
  CHECK(ExtentsOf(counts).columns == kCountChannels && y.elements() == places * kStoredChannels)
      << "counts=" << counts.shape.ToString() << " y=" << y.shape.ToString();
  Run("log1p",
      LookUpPlaces<kCountChannels, kStoredChannels>{
          .table = table, .counts = counts.As<int16_t>(), .y = y.As<Bfloat16>(), .count = places});
}

absl::StatusOr<std::unique_ptr<Convolution>> CudaBackend::MakeConvolution(const ConvShape& shape) {
  return MakeCudaConvolution(this, LayoutOf(shape), DType::kFloat32);
}

bool CudaBackend::FusesBlocks() {
  if (!fuses_blocks_.has_value()) {
    const bool wants = options_.fuses_blocks && options_.precision == Precision::kBfloat16;
    const absl::Status status =
        wants ? TryPooledBlock(device_.get()) : absl::InvalidArgumentError("not asked for");
    fuses_blocks_ = status.ok();
    if (wants && !status.ok())
      LOG(WARNING) << "backend=" << name() << ": blocks are not fused, refused=" << Quoted(status);
  }
  return *fuses_blocks_;
}

absl::StatusOr<std::unique_ptr<ConvPool>> CudaBackend::MakeConvPool(const ConvPoolShape& shape) {
  return MakeCudaConvPool(this, shape);
}

template <typename T, typename Pooled>
void CudaBackend::Pool(const Tensor& x, const Tensor& bias, double slope, const Tensor& y,
                       const Tensor& code) {
  const Shape& e = x.shape;
  const auto pool = [&]<int kWidth>(std::integral_constant<int, kWidth>) {
    Run("pool",
        cuda::PoolForward<T, Pooled, kWidth>{
            .x = x.As<T>(),
            .bias = bias.As<float>(),
            .y = y.As<Pooled>(),
            .code = code.As<uint8_t>(),
            .windows = PoolWindows::Of({e[1], e[2], e[3], e[4]}, /*remainders=*/false, kWidth),
            .slope = static_cast<float>(slope),
            .count = y.elements() / kWidth});
  };
  WithWidth<kVecWidth<T>>(e[4], {x.data, y.data, code.data}, pool);
}

// `x` may be what a convolution left, in its number.
void CudaBackend::PoolForward(const Tensor& x, const Tensor& bias, double slope, const Tensor& y,
                              const Tensor& code) {
  CHECK(y.shape == PooledShape(x.shape) && code.shape == y.shape && bias.elements() == x.shape[4]);
  WithNumbers(x, y, [&]<typename T, typename Pooled>(T, Pooled) {
    Pool<T, Pooled>(x, bias, slope, y, code);
  });
}

template <typename T, typename Pooled>
void CudaBackend::Unpool(const Tensor& dy, const Tensor& code, double slope, const Tensor& dx) {
  const Shape& e = dx.shape;
  const auto unpool = [&]<int kWidth>(std::integral_constant<int, kWidth>) {
    const PoolWindows windows =
        PoolWindows::Of({e[1], e[2], e[3], e[4]}, /*remainders=*/true, kWidth);
    Run("pool backward",
        cuda::PoolBackward<T, Pooled, kWidth>{.dy = dy.As<Pooled>(),
                                              .code = code.As<uint8_t>(),
                                              .dx = dx.As<T>(),
                                              .windows = windows,
                                              .slope = static_cast<float>(slope),
                                              .count = e[0] * windows.per_sample()});
  };
  WithWidth<kVecWidth<T>>(e[4], {dx.data, dy.data, code.data}, unpool);
}

void CudaBackend::PoolBackward(const Tensor& dy, const Tensor& code, double slope, const Tensor& dx,
                               const Tensor& dbias) {
  CHECK(dy.shape == PooledShape(dx.shape) && code.shape == dy.shape);
  WithNumbers(dx, dy, [&]<typename T, typename Pooled>(T, Pooled) {
    Unpool<T, Pooled>(dy, code, slope, dx);
    PoolBias<Pooled>(dy, code, slope, dbias);
  });
}

template <typename Pooled>
void CudaBackend::PoolBias(const Tensor& dy, const Tensor& code, double slope,
                           const Tensor& dbias) {
  CHECK(dbias.elements() == dy.shape[4]);
  SumRows(
      "pool bias",
      PooledGradients<Pooled>{
          .dy = dy.As<Pooled>(), .code = code.As<uint8_t>(), .slope = static_cast<float>(slope)},
      dy.elements() / dy.shape[4], 1, dbias);
}

MatmulCall CudaBackend::Product(bool transpose_a, bool transpose_b, const Tensor& a,
                                const Tensor& b, const Tensor& c, ProductNumbers numbers) const {
  const int64_t inner = transpose_a ? a.shape[0] : a.shape[1];
  CHECK(inner == (transpose_b ? b.shape[1] : b.shape[0]) &&
        c.shape ==
            Shape({transpose_a ? a.shape[1] : a.shape[0], transpose_b ? b.shape[0] : b.shape[1]}))
      << "a=" << a.shape.ToString() << " b=" << b.shape.ToString() << " c=" << c.shape.ToString();
  return MatmulOf({.transpose_a = transpose_a,
                   .transpose_b = transpose_b,
                   .rows = c.shape[0],
                   .columns = c.shape[1],
                   .inner = inner},
                  a.data, b.data, c.data, numbers);
}

void CudaBackend::DenseForward(const Tensor& x, const Tensor& w, const Tensor& y) {
  Issue("dense", Product(false, false, x, w, y, numbers()));
}

void CudaBackend::DenseBackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) {
  Issue("dense backward data", Product(false, true, dy, w, dx, numbers()));
}

void CudaBackend::DenseBackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) {
  Issue("dense backward weights", Product(true, false, x, dy, dw, numbers()));
}

template <typename T>
void CudaBackend::Activate(const Tensor& y, const Tensor& bias, const Activation& f) {
  Run("activation", cuda::ActivationForward<T>{.y = y.As<T>(),
                                               .bias = bias.As<float>(),
                                               .curve = CurveOf(f),
                                               .parameter = static_cast<float>(f.parameter),
                                               .columns = y.shape[1],
                                               .count = y.elements()});
}

void CudaBackend::ActivationForward(const Tensor& y, const Tensor& bias, const Activation& f) {
  CHECK(bias.elements() == y.shape[1]);
  y.dtype == DType::kBfloat16 ? Activate<Bfloat16>(y, bias, f) : Activate<float>(y, bias, f);
}

template <typename T>
void CudaBackend::ActivateBackward(const Tensor& y, const Activation& f, const Tensor& dy,
                                   const Tensor& dbias) {
  const bool is_identity = f.kind == Activation::Kind::kLeakyRelu && f.parameter == 1;
  if (!is_identity)
    Run("activation backward",
        cuda::ActivationBackward<T>{.y = y.As<T>(),
                                    .dy = dy.As<T>(),
                                    .curve = CurveOf(f),
                                    .parameter = static_cast<float>(f.parameter),
                                    .count = y.elements()});
  SumRows("activation bias", Values<T>{dy.As<T>()}, y.shape[0], 1, dbias);
}

void CudaBackend::ActivationBackward(const Tensor& y, const Activation& f, const Tensor& dy,
                                     const Tensor& dbias) {
  CHECK(y.shape == dy.shape && dbias.elements() == y.shape[1]);
  y.dtype == DType::kBfloat16 ? ActivateBackward<Bfloat16>(y, f, dy, dbias)
                              : ActivateBackward<float>(y, f, dy, dbias);
}

void CudaBackend::Dropout(const DropoutMask& mask, const Tensor& y, const Tensor& scale) {
  CHECK(y.shape == scale.shape && mask.rate >= 0 && mask.rate < 1) << "rate=" << mask.rate;
  Run("dropout", cuda::Dropout{.stream = mask.stream,
                               .first_index = mask.first_index,
                               .rate = mask.rate,
                               .kept = static_cast<float>(1 / (1 - mask.rate)),
                               .y = y.As<float>(),
                               .scale = scale.As<float>(),
                               .count = y.elements()});
}

void CudaBackend::Multiply(const Tensor& factor, const Tensor& x) {
  CHECK(factor.elements() == x.elements());
  Run("multiply",
      cuda::Multiply{.factor = factor.As<float>(), .x = x.As<float>(), .count = x.elements()});
}

void CudaBackend::SquaredError(const Tensor& prediction, const Tensor& target,
                               const Tensor& gradient, const Tensor& loss) {
  CHECK(prediction.shape == target.shape && gradient.shape == target.shape);
  Run("loss gradient", SquaredErrorGradient{.prediction = prediction.As<float>(),
                                            .target = target.As<float>(),
                                            .gradient = gradient.As<float>(),
                                            .count = target.elements()});
  SumRows("loss", SquaredDifferences{prediction.As<float>(), target.As<float>()}, target.elements(),
          1 / static_cast<double>(target.elements()), loss);
}

void CudaBackend::Sgd(const SgdStep& step, const Tensor& parameters, const Tensor& gradients,
                      const Tensor& velocity) {
  CHECK(parameters.elements() == gradients.elements());
  CHECK(parameters.elements() == velocity.elements());
  Run("sgd", cuda::Sgd{.rate = static_cast<float>(step.learning_rate),
                       .momentum = static_cast<float>(step.momentum),
                       .decay = static_cast<float>(2 * step.l2),
                       .w = parameters.As<float>(),
                       .g = gradients.As<float>(),
                       .v = velocity.As<float>(),
                       .count = parameters.elements()});
}

void CudaBackend::SumOfSquares(const Tensor& x, const Tensor& sum) {
  SumRows("sum of squares", Squares{x.As<float>()}, x.elements(), 1, sum);
}

}  // namespace assay::cuda
