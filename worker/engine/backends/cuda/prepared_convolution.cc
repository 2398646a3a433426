#include "worker/engine/backends/cuda/prepared_convolution.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"
#include "worker/engine/backends/cuda/call_text.h"
#include "worker/engine/backends/cuda/fault.h"

namespace assay::cuda {
namespace {

// What an engine with an epilogue may ask for, at least: it is planned when the memory is given
// out.
constexpr size_t kFusedWorkspace = size_t{16} << 20;

std::byte* At(void* scratch, size_t offset) {
  return static_cast<std::byte*>(scratch) + offset;
}

template <typename From, typename To>
void ConvertAll(CudaBackend* backend, absl::string_view what, void* x, void* y, int64_t count) {
  backend->Run(what, cuda::Convert<From, To>{static_cast<From*>(x), static_cast<To*>(y), count});
}

}  // namespace

absl::StatusOr<std::unique_ptr<PreparedConvolution>> PreparedConvolution::Make(
    CudaBackend* backend, const ConvolutionLayout& layout, const Options& options) {
  CHECK(layout.empty_channels() == 0 || !options.wants_dx) << "x=" << layout.x.ToString();
  std::unique_ptr<PreparedConvolution> result(new PreparedConvolution(backend, layout, options));
  RETURN_IF_ERROR(result->Choose());
  RETURN_IF_ERROR(result->PlanMemory());
  return result;
}

PreparedConvolution::~PreparedConvolution() {
  backend_->Free(packed_);
}

absl::Status PreparedConvolution::Choose() {
  is_direct_ = layout_.groups != 1;
  if (is_direct_) return absl::OkStatus();
  for (const Precision candidate : {Precision::kBfloat16, Precision::kTf32, Precision::kFloat32}) {
    if (candidate > options_.precision) continue;
    const absl::Status status = MakePlans(candidate, &plans_);
    if (status.ok()) {
      precision_ = candidate;
      return absl::OkStatus();
    }
    if (status.code() != absl::StatusCode::kInvalidArgument) return status;
    LOG(WARNING) << "backend=cuda x=" << layout_.x.ToString() << " w=" << layout_.w.ToString()
                 << " refused=" << Quoted(status);
  }
  LOG(WARNING) << "backend=cuda x=" << layout_.x.ToString() << " w=" << layout_.w.ToString()
               << ": no library implementation; using slow loops";
  is_direct_ = true;
  return absl::OkStatus();
}

absl::Status PreparedConvolution::MakePlans(Precision precision, Plans* plans) const {
  *plans = {};
  const auto plan = [&](const ConvolutionProblem& problem,
                        std::unique_ptr<ConvolutionPlan>* result) {
    return ToStatus(absl::StrCat("plan a convolution, ", TextOf(problem)),
                    backend_->engines()->Plan(problem, result));
  };
  RETURN_IF_ERROR(plan(ProblemOf(layout_, Direction::kForward, precision), &plans->forward));
  if (options_.wants_dx)
    RETURN_IF_ERROR(plan(ProblemOf(layout_, Direction::kBackwardData, precision), &plans->data));
  return plan(ProblemOf(layout_, Direction::kBackwardWeights, precision), &plans->weights);
}

absl::Status PreparedConvolution::PlanMemory() {
  if (is_direct_) return absl::OkStatus();
  const size_t number = BytesOf(precision_);
  const auto weights = static_cast<size_t>(layout_.packed_weights());
  if (is_bf16() != options_.bf16_maps)
    input_offset_ = scratch_.Add(static_cast<size_t>(layout_.x.elements()) * number);
  if (converts_y())
    result_offset_ = scratch_.Add(static_cast<size_t>(layout_.y.elements()) * number);
  gradient_offset_ = scratch_.Add(weights * sizeof(float));
  const size_t channels = static_cast<size_t>(layout_.direct.out_channels) * sizeof(float);
  factor_offset_ = scratch_.Add(channels);
  addend_offset_ = scratch_.Add(channels);
  workspace_bytes_ = options_.own_y && !backend_->FusesBlocks() ? 0 : kFusedWorkspace;
  for (const ConvolutionPlan* plan :
       {plans_.forward.get(), plans_.data.get(), plans_.weights.get()})
    if (plan != nullptr) workspace_bytes_ = std::max(workspace_bytes_, plan->workspace_bytes());
  workspace_offset_ = scratch_.Add(workspace_bytes_);
  ASSIGN_OR_RETURN(packed_, backend_->Allocate(weights * number));
  return absl::OkStatus();
}

// (k, k, k, in, out) to (out, k, k, k, in), a transposed matrix, with zeros for channels that are
// empty.
template <typename T>
void PreparedConvolution::PackAs(float* w) {
  const DirectShape& direct = layout_.direct;
  const int64_t columns = direct.out_channels, rows = direct.weights / columns;
  auto* const packed = static_cast<T*>(packed_);
  if (layout_.empty_channels() == 0) {
    backend_->Run("pack", Transpose<float, T>::Of(w, packed, rows, columns));
  } else {
    backend_->Run("pack", PackWeights<T>{.w = w,
                                         .packed = packed,
                                         .in_channels = direct.in_group,
                                         .stored_channels = direct.in_channels,
                                         .taps = rows / direct.in_group,
                                         .out_channels = columns,
                                         .count = layout_.packed_weights()});
  }
}

void PreparedConvolution::Pack(float* w) {
  if (std::exchange(is_packed_, true)) return;
  is_bf16() ? PackAs<Bfloat16>(w) : PackAs<float>(w);
}

// The reverse, of gradients.
template <typename T>
void PreparedConvolution::UnpackAs(const void* gradient, float* dw) {
  const DirectShape& direct = layout_.direct;
  const int64_t rows = direct.out_channels, columns = direct.weights / rows;
  const auto* const packed = static_cast<const T*>(gradient);
  if (layout_.empty_channels() == 0) {
    backend_->Run("unpack", Transpose<T, float>::Of(packed, dw, rows, columns));
  } else {
    backend_->Run("unpack", UnpackWeights<T>{.packed = packed,
                                             .w = dw,
                                             .in_channels = direct.in_group,
                                             .stored_channels = direct.in_channels,
                                             .taps = columns / direct.in_group,
                                             .out_channels = rows,
                                             .count = direct.weights});
  }
}

// x in the library's number.
void* PreparedConvolution::Input(void* x, void* scratch) {
  if (is_bf16() == options_.bf16_maps) return x;
  void* const input = At(scratch, input_offset_);
  const int64_t count = layout_.x.elements();
  if (is_bf16()) {
    ConvertAll<float, Bfloat16>(backend_, "cast to bfloat16", x, input, count);
  } else {
    ConvertAll<Bfloat16, float>(backend_, "cast to float32", x, input, count);
  }
  return input;
}

// Where the library leaves y.
void* PreparedConvolution::OwnResult(void* y, void* scratch) const {
  return converts_y() ? At(scratch, result_offset_) : y;
}

// From there to y.
void PreparedConvolution::Unload(void* own, void* y) {
  if (!converts_y()) return;
  if (is_bf16()) {
    ConvertAll<Bfloat16, float>(backend_, "cast to float32", own, y, layout_.y.elements());
  } else {
    ConvertAll<float, Bfloat16>(backend_, "cast to bfloat16", own, y, layout_.y.elements());
  }
}

// dy in the library's number.
void* PreparedConvolution::OwnGradient(void* dy, void* scratch) {
  if (!converts_y()) return dy;
  void* const own = At(scratch, result_offset_);
  if (is_bf16()) {
    ConvertAll<float, Bfloat16>(backend_, "cast to bfloat16", dy, own, layout_.y.elements());
  } else {
    ConvertAll<Bfloat16, float>(backend_, "cast to float32", dy, own, layout_.y.elements());
  }
  return own;
}

void PreparedConvolution::Call(const ConvolutionCall& call, void* scratch) {
  ConvolutionCall complete = call;
  complete.workspace = At(scratch, workspace_offset_);
  backend_->Issue("convolution", complete);
}

template <typename T>
void PreparedConvolution::RunDirect(void* x, float* w, const ChannelTerms& channels, void* y) {
  backend_->Run("convolution", DirectForward<T>{.x = static_cast<T*>(x),
                                                .w = w,
                                                .y = static_cast<T*>(y),
                                                .s = layout_.direct,
                                                .channels = channels,
                                                .count = layout_.y.elements()});
}

void PreparedConvolution::Forward(void* x, float* w, void* y, void* scratch) {
  if (is_direct_) {
    options_.bf16_maps ? RunDirect<Bfloat16>(x, w, {}, y) : RunDirect<float>(x, w, {}, y);
    return;
  }
  Pack(w);
  void* const own = OwnResult(y, scratch);
  Call({.plan = plans_.forward.get(), .x = Input(x, scratch), .w = packed_, .y = own}, scratch);
  Unload(own, y);
}

void PreparedConvolution::PlanNormalised(bool relu) {
  if (is_direct_) return;
  std::unique_ptr<ConvolutionPlan>& plan = relu ? normalised_relu_ : normalised_;
  const Epilogue epilogue = relu ? Epilogue::kAffineRelu : Epilogue::kAffine;
  const ConvolutionProblem problem = ProblemOf(layout_, epilogue, precision_, workspace_bytes_);
  const Fault fault = backend_->engines()->Plan(problem, &plan);
  if (fault.ok()) return;
  plan.reset();
  LOG(INFO) << "backend=cuda convolution=" << Quoted(TextOf(problem))
            << ": normalised in a pass of its own, refused=" << Quoted(fault.text);
}

bool PreparedConvolution::ForwardNormalised(void* x, float* w, const ChannelTerms& channels,
                                            void* y, void* scratch) {
  if (is_direct_) {
    options_.bf16_maps ? RunDirect<Bfloat16>(x, w, channels, y)
                       : RunDirect<float>(x, w, channels, y);
    return true;
  }
  ConvolutionPlan* const plan = (channels.relu ? normalised_relu_ : normalised_).get();
  if (plan == nullptr) return false;
  auto* const factor = reinterpret_cast<float*>(At(scratch, factor_offset_));
  auto* const addend = reinterpret_cast<float*>(At(scratch, addend_offset_));
  backend_->Run("fold statistics", FoldChannels{.channels = channels,
                                                .factor = factor,
                                                .addend = addend,
                                                .count = layout_.direct.out_channels});
  Pack(w);
  void* const own = OwnResult(y, scratch);
  Call({.plan = plan,
        .x = Input(x, scratch),
        .w = packed_,
        .y = own,
        .factor = factor,
        .addend = addend},
       scratch);
  Unload(own, y);
  return true;
}

absl::Status PreparedConvolution::PlanPooled(double slope) {
  const DirectShape& s = layout_.direct;
  if (is_direct_ || precision_ != Precision::kBfloat16 || s.depth.out % 2 != 0 ||
      s.height.out % 2 != 0 || s.width.out % 2 != 0 || s.out_channels % MarkPositive::kWidth != 0)
    return absl::InvalidArgumentError(
        "blocks of bfloat16 with even extents and multiples of 8 channels only");
  ConvolutionProblem problem =
      ProblemOf(layout_, Epilogue::kLeakyPool, precision_, workspace_bytes_);
  problem.slope = static_cast<float>(slope);
  return ToStatus("plan a block in one call", backend_->engines()->Plan(problem, &pooled_));
}

void PreparedConvolution::ForwardPooled(void* x, float* w, const float* bias, void* y,
                                        uint8_t* code, void* scratch) {
  CHECK(pooled_ != nullptr && !converts_y()) << "not planned";
  Pack(w);
  Call({.plan = pooled_.get(),
        .x = Input(x, scratch),
        .w = packed_,
        .y = y,
        .addend = bias,
        .places = code},
       scratch);
  backend_->Run("mark positive",
                MarkPositive{.y = static_cast<const Bfloat16*>(y),
                             .code = code,
                             .count = layout_.y.elements() / 8 / MarkPositive::kWidth});
}

void PreparedConvolution::BackwardData(void* dy, float* w, void* dx, void* scratch) {
  CHECK(options_.wants_dx) << "planned without dx";
  const int64_t count = layout_.x.elements();
  const auto direct = [&]<typename T>(T* typed_dy, T* typed_dx) {
    backend_->Run("convolution", DirectData<T>{typed_dy, w, typed_dx, layout_.direct, count});
  };
  if (is_direct_) {
    options_.bf16_maps ? direct(static_cast<Bfloat16*>(dy), static_cast<Bfloat16*>(dx))
                       : direct(static_cast<float*>(dy), static_cast<float*>(dx));
    return;
  }
  Pack(w);
  void* const own_dy = OwnGradient(dy, scratch);
  const bool is_plain = is_bf16() == options_.bf16_maps;
  void* const own = is_plain ? dx : At(scratch, input_offset_);
  Call({.plan = plans_.data.get(), .x = own, .w = packed_, .y = own_dy}, scratch);
  if (is_plain) return;
  if (options_.bf16_maps) {
    ConvertAll<float, Bfloat16>(backend_, "cast to bfloat16", own, dx, count);
  } else {
    ConvertAll<Bfloat16, float>(backend_, "cast to float32", own, dx, count);
  }
}

// As many weights at a time as a sum has columns.
template <typename T>
void PreparedConvolution::SumTaps(void* x, void* dy, float* dw) {
  const DirectShape& direct = layout_.direct;
  for (int64_t first = 0; first < direct.weights; first += kMaxColumns) {
    const int64_t columns = std::min(kMaxColumns, direct.weights - first);
    backend_->SumRows("convolution",
                      TapProducts<T>{static_cast<T*>(x), static_cast<T*>(dy), direct, first},
                      direct.rows, 1, {dw + first, {columns}, DType::kFloat32});
  }
}

void PreparedConvolution::BackwardWeights(void* x, void* dy, float* dw, void* scratch) {
  if (is_direct_) {
    options_.bf16_maps ? SumTaps<Bfloat16>(x, dy, dw) : SumTaps<float>(x, dy, dw);
    return;
  }
  void* const gradient = At(scratch, gradient_offset_);
  void* const own_dy = OwnGradient(dy, scratch);
  Call({.plan = plans_.weights.get(), .x = Input(x, scratch), .w = gradient, .y = own_dy}, scratch);
  is_bf16() ? UnpackAs<Bfloat16>(gradient, dw) : UnpackAs<float>(gradient, dw);
}

}  // namespace assay::cuda
