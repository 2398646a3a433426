// A chain of layers with its parameters, gradients and activations.

#ifndef WORKER_ENGINE_MODEL_H_
#define WORKER_ENGINE_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/engine/arena.h"
#include "worker/engine/backend.h"
#include "worker/engine/layer.h"
#include "worker/engine/recomputation.h"
#include "worker/engine/sequence_layer.h"
#include "worker/engine/tensor.h"

namespace assay {

// Not thread-safe. `backend` must outlive it.
class Model {
 public:
  // `input`: shape of one batch, batch first.
  Model(Backend* backend, const Shape& input, DType input_type = DType::kInt16);

  // Appends a layer; before Commit only.
  void Add(std::unique_ptr<Layer> layer);

  // Allocates everything. Afterwards parameters are zero. With a limit, layers are recomputed so
  // that training_bytes() is within it. RESOURCE_EXHAUSTED: no memory, or a limit that none can
  // keep, whose message names the least one.
  absl::Status Commit(const MemoryLimit& limit = {});
  // As Commit, for evaluation only: forward passes with the parameters and buffers of `trained`, a
  // committed model of the same layers for any batch, which must outlive this one. There are no
  // gradients, nor memory for them; results may lie where `trained` has its own, so that a Forward
  // here ends what a Forward there left. Call ParametersChanged() when those of `trained` changed.
  absl::Status CommitForEvaluation(const Model& trained);

  // Draws all parameters from Stream(seed, Purpose::kInit): equal for equal seeds, whatever the
  // backend or rank.
  void Initialize(uint64_t seed);
  // Must be called after the numbers in the parameters changed.
  void ParametersChanged();

  // Freezes all parameters from the input on up to the last of `layer`, which is how their names
  // begin: "conv3", "block2/conv1". From now on Backward goes only as far as the others need it and
  // leaves the gradients of the frozen ones alone, and no optimizer moves them. Forward is as
  // before: running statistics go on. Cannot be taken back; again for the same layer is nothing.
  // INVALID_ARGUMENT: no layer of that name, or nothing would be left to train; lists the layers.
  absl::Status FreezeThrough(absl::string_view layer);
  // What FreezeThrough would return.
  absl::Status CheckFreezeThrough(absl::string_view layer) const {
    return ParametersThrough(layer).status();
  }

  // The last layer's result, batch first, valid until the next Forward.
  Tensor Forward(const Tensor& input, Pass pass);
  // After Forward on the same input: fills all gradients but those of frozen parameters. May
  // overwrite `dy`.
  void Backward(const Tensor& dy, Pass pass);

  const Shape& input() const { return input_; }
  DType input_type() const { return input_type_; }
  Shape output() const;
  // In the order in which they lie in the flat tensors.
  const std::vector<Parameter*>& parameters() const { return parameters_; }
  int64_t parameter_count() const;
  const std::vector<Buffer*>& buffers() const { return buffers_; }
  int64_t buffer_elements() const;
  Tensor flat_parameters() const { return values_.Flat(backend_->real()); }
  Tensor flat_gradients() const { return gradients_.Flat(backend_->real()); }
  // The part of a tensor that is laid out like those that belongs to parameters that are not
  // frozen: frozen ones lie in front.
  Tensor Trained(const Tensor& flat) const;
  int64_t frozen_elements() const { return frozen_elements_; }
  // All buffers without gaps; only where there are any.
  Tensor flat_buffers() const { return buffer_values_.Flat(backend_->real()); }
  // Of one batch, after Commit.
  LayerFlops flops() const;
  // Bytes of one batch, as LayerTraffic counts them. After Commit.
  LayerTraffic traffic_bytes() const;
  // Of activations and scratch, without what the backend keeps for its operations and what lies in
  // another model's memory. After Commit.
  size_t activation_bytes() const { return activations_.bytes(); }
  // What its training takes of its backend's memory: parameters, gradients, MemoryLimit's copies of
  // them, buffers, activations and scratch, and a batch's input, targets and gradient of the
  // output. After Commit.
  size_t training_bytes() const { return other_bytes_ + activations_.bytes(); }
  const Recomputation& recomputation() const { return recomputation_; }

 private:
  absl::Status Plan(bool has_backward);
  absl::Status PlanInto(bool has_backward, Arena* activations);
  size_t BytesBesideActivations(const MemoryLimit& limit) const;
  absl::StatusOr<size_t> ParametersThrough(absl::string_view layer) const;

  Backend* const backend_;
  const Shape input_;
  const DType input_type_;
  const std::unique_ptr<SequenceLayer> layers_;
  std::vector<Parameter*> parameters_;
  std::vector<Buffer*> buffers_;
  Arena values_;
  Arena gradients_;
  Arena buffer_values_;
  Arena activations_;
  Tensor scratch_;
  Recomputation recomputation_;
  size_t other_bytes_ = 0;  // of training_bytes()
  int64_t frozen_elements_ = 0;
};

}  // namespace assay

#endif  // WORKER_ENGINE_MODEL_H_
