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

// What was chosen belongs to a run's evidence, and tells two runs' speeds apart.
Fault PlanLogged(Device* device, const ConvolutionProblem& problem,
                 std::unique_ptr<ConvolutionPlan>* plan) {
  Fault fault = device->PlanConvolution(problem, plan);
  if (fault.ok())
    LOG(INFO) << "backend=cuda convolution=" << Quoted(TextOf(problem)) << " "
              << (*plan)->Describe() << " workspace_bytes=" << (*plan)->workspace_bytes();
  return fault;
}

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
  CHECK(!options.bf16_maps || !layout.is_padded_by_copy) << "x=" << layout.x.ToString();
  std::unique_ptr<PreparedConvolution> result(new PreparedConvolution(backend, layout, options));
  RETURN_IF_ERROR(result->Choose());
  RETURN_IF_ERROR(result->PlanMemory());
  return result;
}

PreparedConvolution::~PreparedConvolution() {
  backend_->Free(packed_);
}

absl::Status PreparedConvolution::Choose() {
  is_direct_ = layout_.direct.in_group != layout_.direct.in_channels;
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
                    PlanLogged(backend_->device(), problem, result));
  };
  RETURN_IF_ERROR(plan(ProblemOf(layout_, Direction::kForward, precision), &plans->forward));
  if (options_.wants_dx)
    RETURN_IF_ERROR(plan(ProblemOf(layout_, Direction::kBackwardData, precision), &plans->data));
  return plan(ProblemOf(layout_, Direction::kBackwardWeights, precision), &plans->weights);
}

absl::Status PreparedConvolution::PlanMemory() {
  if (is_direct_) return absl::OkStatus();
  const size_t number = BytesOf(precision_);
  const size_t weights = static_cast<size_t>(layout_.w.elements());
  if (is_bf16() != options_.bf16_maps || layout_.is_padded_by_copy)
    input_offset_ = scratch_.Add(static_cast<size_t>(layout_.padded_elements()) * number);
  if (converts_y())
    result_offset_ = scratch_.Add(static_cast<size_t>(layout_.y.elements()) * number);
  gradient_offset_ = scratch_.Add(weights * sizeof(float));
  const size_t channels = static_cast<size_t>(layout_.direct.out_channels) * sizeof(float);
  factor_offset_ = scratch_.Add(channels);
  addend_offset_ = scratch_.Add(channels);
  workspace_bytes_ = options_.own_y ? 0 : kFusedWorkspace;
  for (const ConvolutionPlan* plan :
       {plans_.forward.get(), plans_.data.get(), plans_.weights.get()})
    if (plan != nullptr) workspace_bytes_ = std::max(workspace_bytes_, plan->workspace_bytes());
  workspace_offset_ = scratch_.Add(workspace_bytes_);
  ASSIGN_OR_RETURN(packed_, backend_->Allocate(weights * number));
  return absl::OkStatus();
}

// (k, k, k, in, out) to (out, k, k, k, in): a transposed matrix.
void PreparedConvolution::Pack(float* w) {
  if (std::exchange(is_packed_, true)) return;
  const int64_t columns = layout_.direct.out_channels, rows = layout_.direct.weights / columns;
  if (is_bf16()) {
    backend_->Run(
        "pack", Transpose<float, Bfloat16>::Of(w, static_cast<Bfloat16*>(packed_), rows, columns));
  } else {
    backend_->Run("pack",
                  Transpose<float, float>::Of(w, static_cast<float*>(packed_), rows, columns));
  }
}

// x as the library wants it: padded, in its number, both or as it is.
void* PreparedConvolution::Input(void* x, void* scratch) {
  void* const input = At(scratch, input_offset_);
  const int64_t count = layout_.padded_elements();
  if (layout_.is_padded_by_copy) {
    auto* const from = static_cast<float*>(x);
    if (is_bf16()) {
      backend_->Run(
          "pad", Pad<float, Bfloat16>{from, static_cast<Bfloat16*>(input), layout_.inset, count});
    } else {
      backend_->Run("pad",
                    Pad<float, float>{from, static_cast<float*>(input), layout_.inset, count});
    }
    return input;
  }
  if (is_bf16() == options_.bf16_maps) return x;
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
  const Fault fault = PlanLogged(backend_->device(), problem, &plan);
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
  const bool is_plain = is_bf16() == options_.bf16_maps && !layout_.is_padded_by_copy;
  void* const own = is_plain ? dx : At(scratch, input_offset_);
  Call({.plan = plans_.data.get(), .x = own, .w = packed_, .y = own_dy}, scratch);
  if (is_plain) return;
  if (options_.bf16_maps) {
    ConvertAll<float, Bfloat16>(backend_, "cast to bfloat16", own, dx, count);
  } else if (is_bf16()) {
    backend_->Run("crop", Crop<Bfloat16, float>{static_cast<Bfloat16*>(own),
                                                static_cast<float*>(dx), layout_.inset, count});
  } else {
    backend_->Run("crop", Crop<float, float>{static_cast<float*>(own), static_cast<float*>(dx),
                                             layout_.inset, count});
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
  const int64_t count = layout_.direct.weights;
  void* const gradient = At(scratch, gradient_offset_);
  void* const own_dy = OwnGradient(dy, scratch);
  Call({.plan = plans_.weights.get(), .x = Input(x, scratch), .w = gradient, .y = own_dy}, scratch);
  const int64_t rows = layout_.direct.out_channels, columns = count / rows;
  if (is_bf16()) {
    backend_->Run("unpack", Transpose<Bfloat16, float>::Of(static_cast<Bfloat16*>(gradient), dw,
                                                           rows, columns));
  } else {
    backend_->Run("unpack",
                  Transpose<float, float>::Of(static_cast<float*>(gradient), dw, rows, columns));
  }
}

}  // namespace assay::cuda
