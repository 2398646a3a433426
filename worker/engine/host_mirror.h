// A vector of a backend as the host sees it: the memory itself where the backend computes on the
// host, otherwise a copy that is fetched and written back on demand.

#ifndef WORKER_ENGINE_HOST_MIRROR_H_
#define WORKER_ENGINE_HOST_MIRROR_H_

#include <span>
#include <utility>
#include <vector>

#include "worker/engine/backend.h"
#include "worker/engine/tensor.h"

namespace assay {

// Not thread-safe. `backend` must outlive it.
class HostMirror {
 public:
  explicit HostMirror(Backend* backend) : backend_(backend) {}

  // The present numbers of `tensor`, which is float32; valid until the next call.
  std::span<float> Pull(const Tensor& tensor) {
    if (backend_->is_host_memory()) return tensor.Span<float>();
    copy_.resize(static_cast<size_t>(tensor.elements()));
    backend_->CopyOut(tensor, copy_.data());
    tensor_ = tensor;
    return copy_;
  }
  // Writes back what was pulled, as the host left it; does nothing the second time.
  void Push() {
    const Tensor tensor = std::exchange(tensor_, Tensor{});
    if (tensor.data != nullptr) backend_->CopyIn(copy_.data(), tensor);
  }
  // What was pulled is out of date.
  void Forget() { tensor_ = {}; }

 private:
  Backend* const backend_;
  std::vector<float> copy_;
  Tensor tensor_;  // empty: nothing to write back
};

}  // namespace assay

#endif  // WORKER_ENGINE_HOST_MIRROR_H_
