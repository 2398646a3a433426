// How the gradients of a rank become their mean over all ranks.

#ifndef WORKER_ENGINE_GRADIENT_REDUCER_H_
#define WORKER_ENGINE_GRADIENT_REDUCER_H_

#include <cstdint>
#include <memory>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include "worker/engine/backend.h"
#include "worker/engine/gradient_buckets.h"
#include "worker/engine/host_mirror.h"
#include "worker/engine/model.h"
#include "worker/engine/rank_average.h"

namespace assay {

// Replaces the local gradients, in place, by their mean over all ranks.
using ReduceGradients = absl::FunctionRef<absl::Status(std::span<float> gradients)>;

struct ReducerOptions {
  // The only rank: where gradients are not in the host's memory, nothing is called and they stay
  // where they are.
  bool is_alone = false;
  // Where the ranks' devices average gradients: in buckets of about so many bytes, while the
  // backward pass goes on; 0: all at once after it.
  int64_t bucket_bytes = kGradientBucketMib << 20;
};

// Takes one of three ways, by what the backend has: its devices average among themselves once they
// have joined (RankAverage), in buckets beside the backward pass or all at once behind it; else the
// gradients go to the host, where the caller's function averages them; a rank that is alone and has
// a device leaves them there. Frozen parameters are left out.
//
// One step is Backward, ReduceOnHost, ReduceOnDevice; with accumulation Backward several times, and
// between them whatever adds up. Not thread-safe.
class GradientReducer {
 public:
  // `model`: committed. `backend` and `model` must outlive this. `has_one_pass`: one backward pass
  // leaves a step's gradients; otherwise their sum is there only after several, and nothing is
  // averaged in buckets.
  GradientReducer(Backend* backend, Model* model, bool has_one_pass, const ReducerOptions& options);

  // The model's backward pass. In buckets the gradients are means when it is done.
  void Backward(const Tensor& dy, const Pass& pass);
  // Lets `reduce` average the gradients where this goes through the host. Its status if it fails.
  absl::Status ReduceOnHost(ReduceGradients reduce);
  // Averages them where the devices do so all at once.
  void ReduceOnDevice();

  // The backend's own averages, for its ranks to join; null if it has none.
  RankAverage* device() const { return backend_->rank_average(); }
  // Gradients averaged there so far.
  AverageCounts counts() const;

 private:
  bool IsOnDevice() const;
  bool IsInBuckets() const;
  Tensor gradients() const { return model_->Trained(model_->flat_gradients()); }

  Backend* const backend_;
  Model* const model_;
  const bool has_one_pass_;
  const ReducerOptions options_;
  HostMirror on_host_;
  std::unique_ptr<GradientBuckets> buckets_;  // from the first step that needs them on
  AverageCounts flat_counts_;
};

}  // namespace assay

#endif  // WORKER_ENGINE_GRADIENT_REDUCER_H_
