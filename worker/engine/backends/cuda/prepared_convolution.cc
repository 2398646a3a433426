#include "worker/engine/backends/cuda/prepared_convolution.h"

#include <algorithm>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "worker/engine/backends/cuda/fault.h"

namespace assay::cuda {
namespace {

std::byte* At(void* scratch, size_t offset) {
  return static_cast<std::byte*>(scratch) + offset;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PreparedConvolution>> PreparedConvolution::Make(
    CudaBackend* backend, const ConvolutionLayout& layout, Precision precision, bool wants_dx) {
  std::unique_ptr<PreparedConvolution> result(new PreparedConvolution(backend, layout, wants_dx));
  RETURN_IF_ERROR(result->Choose(precision));
  RETURN_IF_ERROR(result->PlanMemory());
  return result;
}

PreparedConvolution::~PreparedConvolution() {
  backend_->Free(packed_);
}

absl::Status PreparedConvolution::Choose(Precision precision) {
  is_direct_ = layout_.direct.in_group != layout_.direct.in_channels;
  if (is_direct_) return absl::OkStatus();
  for (const Precision candidate : {Precision::kBfloat16, Precision::kTf32, Precision::kFloat32}) {
    if (candidate > precision) continue;
    const absl::Status status = MakePlans(candidate, &plans_);
    if (status.ok()) {
      precision_ = candidate;
      return absl::OkStatus();
    }
    if (status.code() != absl::StatusCode::kInvalidArgument) return status;
    LOG(WARNING) << "backend=cuda x=" << layout_.x.ToString() << " w=" << layout_.w.ToString()
                 << " precision=" << static_cast<int>(candidate) << " refused=\"" << status << "\"";
  }
  LOG(WARNING) << "backend=cuda x=" << layout_.x.ToString() << " w=" << layout_.w.ToString()
               << ": no library implementation; using slow loops";
  is_direct_ = true;
  return absl::OkStatus();
}

absl::Status PreparedConvolution::MakePlans(Precision precision, Plans* plans) const {
  *plans = {};
  const auto plan = [&](Direction direction, std::unique_ptr<ConvolutionPlan>* result) {
    return ToStatus("plan a convolution", backend_->device()->PlanConvolution(
                                              ProblemOf(layout_, direction, precision), result));
  };
  RETURN_IF_ERROR(plan(Direction::kForward, &plans->forward));
  if (wants_dx_) RETURN_IF_ERROR(plan(Direction::kBackwardData, &plans->data));
  return plan(Direction::kBackwardWeights, &plans->weights);
}

absl::Status PreparedConvolution::PlanMemory() {
  if (is_direct_) return absl::OkStatus();
  const size_t number = BytesOf(precision_);
  const size_t weights = static_cast<size_t>(layout_.w.elements());
  if (is_short() || layout_.is_padded_by_copy)
    input_offset_ = scratch_.Add(static_cast<size_t>(layout_.padded_elements()) * number);
  gradient_offset_ = scratch_.Add(weights * number);
  size_t workspace = 0;
  for (const ConvolutionPlan* plan :
       {plans_.forward.get(), plans_.data.get(), plans_.weights.get()})
    if (plan != nullptr) workspace = std::max(workspace, plan->workspace_bytes());
  workspace_offset_ = scratch_.Add(workspace);
  ASSIGN_OR_RETURN(packed_, backend_->Allocate(weights * number));
  return absl::OkStatus();
}

// (k, k, k, in, out) to (out, k, k, k, in): a transposed matrix.
void PreparedConvolution::Pack(float* w) {
  if (std::exchange(is_packed_, true)) return;
  const int64_t columns = layout_.direct.out_channels, rows = layout_.direct.weights / columns;
  if (is_short()) {
    backend_->Run("pack", Transpose<float, Bfloat16>{w, static_cast<Bfloat16*>(packed_), rows,
                                                     columns, rows * columns});
  } else {
    backend_->Run("pack", Transpose<float, float>{w, static_cast<float*>(packed_), rows, columns,
                                                  rows * columns});
  }
}

// x as the library wants it: padded, short, both or as it is.
void* PreparedConvolution::PaddedInput(float* x, void* scratch) {
  void* const input = At(scratch, input_offset_);
  const int64_t count = layout_.padded_elements();
  if (is_short() && layout_.is_padded_by_copy) {
    backend_->Run("pad",
                  Pad<float, Bfloat16>{x, static_cast<Bfloat16*>(input), layout_.inset, count});
  } else if (is_short()) {
    backend_->Run("shorten", Convert<float, Bfloat16>{x, static_cast<Bfloat16*>(input), count});
  } else if (layout_.is_padded_by_copy) {
    backend_->Run("pad", Pad<float, float>{x, static_cast<float*>(input), layout_.inset, count});
  } else {
    return x;
  }
  return input;
}

void PreparedConvolution::Call(ConvolutionPlan* plan, void* x, void* w, void* y, void* scratch) {
  backend_->Issue(
      "convolution",
      ConvolutionCall{
          .plan = plan, .x = x, .w = w, .y = y, .workspace = At(scratch, workspace_offset_)});
}

void PreparedConvolution::Forward(float* x, float* w, void* y, void* scratch) {
  if (is_direct_) {
    backend_->Run("convolution", DirectForward{x, w, static_cast<float*>(y), layout_.direct,
                                               layout_.y.elements()});
    return;
  }
  Pack(w);
  Call(plans_.forward.get(), PaddedInput(x, scratch), packed_, y, scratch);
}

void PreparedConvolution::BackwardData(void* dy, float* w, float* dx, void* scratch) {
  CHECK(wants_dx_) << "planned without dx";
  const int64_t count = layout_.x.elements();
  if (is_direct_) {
    backend_->Run("convolution", DirectData{static_cast<float*>(dy), w, dx, layout_.direct, count});
    return;
  }
  Pack(w);
  void* const padded = At(scratch, input_offset_);
  const bool is_plain = !is_short() && !layout_.is_padded_by_copy;
  Call(plans_.data.get(), is_plain ? dx : padded, packed_, dy, scratch);
  if (is_plain) return;
  if (is_short()) {
    backend_->Run("crop",
                  Crop<Bfloat16, float>{static_cast<Bfloat16*>(padded), dx, layout_.inset, count});
  } else {
    backend_->Issue(
        "crop", Kernel(Crop<float, float>{static_cast<float*>(padded), dx, layout_.inset, count}));
  }
}

// As many weights at a time as a sum has columns.
void PreparedConvolution::SumTaps(float* x, float* dy, float* dw) {
  const DirectShape& direct = layout_.direct;
  for (int64_t first = 0; first < direct.weights; first += kMaxColumns) {
    const int64_t columns = std::min(kMaxColumns, direct.weights - first);
    backend_->SumRows("convolution", TapProducts{x, dy, direct, first}, direct.rows, 1,
                      {dw + first, {columns}, DType::kFloat32});
  }
}

void PreparedConvolution::BackwardWeights(float* x, void* dy, float* dw, void* scratch) {
  const int64_t count = layout_.direct.weights;
  if (is_direct_) {
    SumTaps(x, static_cast<float*>(dy), dw);
    return;
  }
  void* const gradient = At(scratch, gradient_offset_);
  Call(plans_.weights.get(), PaddedInput(x, scratch), gradient, dy, scratch);
  const int64_t rows = layout_.direct.out_channels, columns = count / rows;
  if (is_short()) {
    backend_->Run("unpack", Transpose<Bfloat16, float>{static_cast<Bfloat16*>(gradient), dw, rows,
                                                       columns, count});
  } else {
    backend_->Run("unpack",
                  Transpose<float, float>{static_cast<float*>(gradient), dw, rows, columns, count});
  }
}

}  // namespace assay::cuda
