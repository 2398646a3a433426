// A chain of layers with its parameters, gradients and activations.

#ifndef WORKER_ENGINE_MODEL_H_
#define WORKER_ENGINE_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"

#include "worker/engine/arena.h"
#include "worker/engine/backend.h"
#include "worker/engine/layer.h"
#include "worker/engine/tensor.h"

namespace assay {

// Not thread-safe. `backend` must outlive it.
class Model {
 public:
  // `input`: shape of one batch, batch first.
  Model(Backend* backend, const Shape& input, DType input_type = DType::kInt16);

  // Appends a layer; before Commit only.
  void Add(std::unique_ptr<Layer> layer);

  // Allocates everything. Afterwards parameters are zero. RESOURCE_EXHAUSTED: no memory.
  absl::Status Commit();

  // Draws all parameters from Stream(seed, Purpose::kInit): equal for equal seeds, whatever the
  // backend or rank.
  void Initialize(uint64_t seed);
  // Must be called after the numbers in the parameters changed.
  void ParametersChanged();

  // The last layer's result, batch first, valid until the next Forward.
  Tensor Forward(const Tensor& input, Pass pass);
  // After Forward on the same input: fills all gradients. May overwrite `dy`.
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
  // All buffers without gaps; only where there are any.
  Tensor flat_buffers() const { return buffer_values_.Flat(backend_->real()); }
  // Of one batch, after Commit.
  LayerFlops flops() const;
  // Of activations and scratch, without what the backend keeps for its operations.
  size_t activation_bytes() const { return activations_.bytes(); }

 private:
  Backend* const backend_;
  const Shape input_;
  const DType input_type_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<Parameter*> parameters_;
  std::vector<Buffer*> buffers_;
  Arena values_;
  Arena gradients_;
  Arena buffer_values_;
  Arena activations_;
  Tensor scratch_;
  std::vector<Tensor> inputs_;  // of each layer in the last Forward
};

}  // namespace assay

#endif  // WORKER_ENGINE_MODEL_H_
