#include "worker/engine/gradient_reducer.h"

#include "common/status.h"

namespace assay {

GradientReducer::GradientReducer(Backend* backend, Model* model, bool has_one_pass,
                                 const ReducerOptions& options)
    : backend_(backend),
      model_(model),
      has_one_pass_(has_one_pass),
      options_(options),
      on_host_(backend) {}

bool GradientReducer::IsOnDevice() const {
  return device() != nullptr && device()->has_joined();
}

bool GradientReducer::IsInBuckets() const {
  return options_.bucket_bytes > 0 && has_one_pass_ && IsOnDevice();
}

void GradientReducer::Backward(const Tensor& dy, const Pass& pass) {
  if (!IsInBuckets()) return model_->Backward(dy, pass);
  if (buckets_ == nullptr)
    buckets_ = std::make_unique<GradientBuckets>(device(), model_->parameters(),
                                                 model_->flat_gradients(), options_.bucket_bytes);
  buckets_->Begin();
  Pass observed = pass;
  observed.observer = buckets_.get();
  model_->Backward(dy, observed);
  buckets_->Finish();
}

absl::Status GradientReducer::ReduceOnHost(ReduceGradients reduce) {
  if (IsOnDevice() || (options_.is_alone && !backend_->is_host_memory())) return absl::OkStatus();
  RETURN_IF_ERROR(reduce(on_host_.Pull(gradients())));
  on_host_.Push();
  return absl::OkStatus();
}

void GradientReducer::ReduceOnDevice() {
  if (!IsOnDevice() || IsInBuckets()) return;
  device()->Average(gradients(), RankScope::kAll);
  ++flat_counts_.averages;
  flat_counts_.bytes += static_cast<int64_t>(gradients().bytes());
}

AverageCounts GradientReducer::counts() const {
  return buckets_ == nullptr ? flat_counts_ : buckets_->counts();
}

}  // namespace assay
