#include "worker/engine/backends/cuda/cuda_adaptive.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "common/log.h"
#include "worker/engine/backends/cuda/cuda_backend.h"
#include "worker/engine/backends/cuda/fault.h"
#include "worker/engine/backends/cuda/plan.h"

namespace assay::cuda {
namespace {

// What the three optimizers have in common; moves along the direction without any decay.
AdaptiveUpdate UpdateOf(const AdaptiveStep& step, const Tensor& parameters, const Tensor& gradients,
                        const Tensor& m, const Tensor& v) {
  CHECK(parameters.elements() == gradients.elements() && parameters.elements() == m.elements() &&
        parameters.elements() == v.elements());
  return {.p = parameters.As<float>(),
          .g = gradients.As<float>(),
          .m = m.As<float>(),
          .v = v.As<float>(),
          .squares = nullptr,
          .max_length = 0,
          .gradient_decay = 0,
          .beta1 = static_cast<float>(step.beta1),
          .rest1 = static_cast<float>(1 - step.beta1),
          .beta2 = static_cast<float>(step.beta2),
          .rest2 = static_cast<float>(1 - step.beta2),
          .m_factor = static_cast<float>(1 / step.correction1()),
          .root_factor = static_cast<float>(1 / std::sqrt(step.correction2())),
          .epsilon = static_cast<float>(step.epsilon),
          .direction_decay = 0,
          .moves = true,
          .keep = 1,
          .rate = static_cast<float>(step.learning_rate),
          .count = parameters.elements()};
}

}  // namespace

void CudaAdaptive::Adam(const AdaptiveStep& step, const Tensor& parameters, const Tensor& gradients,
                        const Tensor& m, const Tensor& v) {
  AdaptiveUpdate update = UpdateOf(step, parameters, gradients, m, v);
  update.gradient_decay = static_cast<float>(step.weight_decay);
  backend_->Run("adam", update);
}

void CudaAdaptive::AdamW(const AdaptiveStep& step, const Tensor& parameters,
                         const Tensor& gradients, const Tensor& m, const Tensor& v) {
  AdaptiveUpdate update = UpdateOf(step, parameters, gradients, m, v);
  update.keep = static_cast<float>(1 - step.learning_rate * step.weight_decay);
  backend_->Run("adamw", update);
}

void CudaAdaptive::Lamb(const AdaptiveStep& step, std::span<const int64_t> sizes,
                        const Tensor& parameters, const Tensor& gradients, const Tensor& m,
                        const Tensor& v) {
  AdaptiveUpdate update = UpdateOf(step, parameters, gradients, m, v);
  update.direction_decay = static_cast<float>(step.weight_decay);
  update.moves = false;
  if (step.max_length > 0) {
    const Tensor squares = {backend_->scratch(), {1}, DType::kFloat32};
    backend_->SumOfSquares(gradients, squares);
    update.squares = squares.As<float>();
    update.max_length = static_cast<float>(step.max_length);
  }
  backend_->Run("lamb direction", update);
  if (step.weight_decay == 0) {
    AddScaled(-step.learning_rate, gradients, parameters);
    return;
  }
  if (!std::ranges::equal(sizes, lengths_.sizes)) PrepareLengths(sizes);
  Move(step.learning_rate, gradients, parameters);
}

// Once for each set of tensors: they change only when layers are frozen.
void CudaAdaptive::PrepareLengths(std::span<const int64_t> sizes) {
  if (backend_->recorder()->is_holding_back()) Must("flush", backend_->recorder()->Flush());
  Release();
  const Chunks cut = ChunksOf(sizes);
  ScratchPlan plan;
  const size_t chunks_bytes = cut.chunks.size() * sizeof(Chunk);
  const size_t firsts_bytes = cut.first_chunks.size() * sizeof(int64_t);
  const size_t chunks = plan.Add(chunks_bytes), firsts = plan.Add(firsts_bytes);
  const size_t parts = plan.Add(cut.chunks.size() * kChunkLanes * sizeof(Pair));
  const size_t ratios = plan.Add(sizes.size() * sizeof(float));
  Device* const device = backend_->device();
  Must("memory for LAMB's lengths", device->Allocate(plan.bytes(), &lengths_.memory));
  const auto at = [this](size_t offset) {
    return static_cast<void*>(static_cast<std::byte*>(lengths_.memory) + offset);
  };
  lengths_.sizes.assign(sizes.begin(), sizes.end());
  lengths_.chunks_count = std::ssize(cut.chunks);
  lengths_.chunks = static_cast<Chunk*>(at(chunks));
  lengths_.first_chunks = static_cast<int64_t*>(at(firsts));
  lengths_.parts = static_cast<Pair*>(at(parts));
  lengths_.ratios = static_cast<float*>(at(ratios));
  Must("copy LAMB's tensors", device->CopyIn(cut.chunks.data(), lengths_.chunks, chunks_bytes));
  Must("copy LAMB's tensors",
       device->CopyIn(cut.first_chunks.data(), lengths_.first_chunks, firsts_bytes));
}

void CudaAdaptive::Release() {
  if (lengths_.memory != nullptr) backend_->device()->Free(lengths_.memory);
  lengths_ = {};
}

// All tensors at once: a step of DeepCAM has three hundred.
void CudaAdaptive::Move(double rate, const Tensor& direction, const Tensor& parameters) {
  backend_->Run("lengths", ChunkSquares{.chunks = lengths_.chunks,
                                        .x = parameters.As<float>(),
                                        .y = direction.As<float>(),
                                        .sums = lengths_.parts,
                                        .count = lengths_.chunks_count * kChunkLanes});
  backend_->Run("lengths", TensorRatios{.first_chunks = lengths_.first_chunks,
                                        .parts = lengths_.parts,
                                        .ratios = lengths_.ratios,
                                        .count = std::ssize(lengths_.sizes)});
  backend_->Run("lamb move", LambMove{.rate = static_cast<float>(rate),
                                      .chunks = lengths_.chunks,
                                      .ratios = lengths_.ratios,
                                      .direction = direction.As<float>(),
                                      .p = parameters.As<float>(),
                                      .count = lengths_.chunks_count * kChunkElements});
}

void CudaAdaptive::AddScaled(double factor, const Tensor& x, const Tensor& y) {
  backend_->maps()->Combine(factor, x, 1, y);
}

}  // namespace assay::cuda
