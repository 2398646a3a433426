// What a forward or backward pass needs to know besides tensors.

#ifndef WORKER_ENGINE_PASS_H_
#define WORKER_ENGINE_PASS_H_

#include <cstdint>
#include <span>

#include "common/random.h"
#include "worker/engine/parameter.h"
#include "worker/engine/tensor.h"

namespace assay {

// The ranks that normalise their batches together.
class GroupMean {
 public:
  virtual ~GroupMean() = default;
  // Replaces each number by its mean over the ranks of the group; all call it in the same order.
  // `values` lies in the host's memory, or where is_on_device() in the backend's.
  // Ends the process if a rank is gone.
  virtual void Average(const Tensor& values) = 0;
  // Whether the ranks' devices take the mean by themselves.
  virtual bool is_on_device() const { return false; }
  // How many ranks there are in the group.
  virtual int size() const = 0;
};

// Is told during a backward pass which gradients will not be written again in it.
class GradientObserver {
 public:
  virtual ~GradientObserver() = default;
  // Their kernels have all been started. A parameter may be told of more than once, frozen ones
  // too.
  virtual void Final(std::span<Parameter* const> parameters) = 0;
};

class Layer;

// Is told what layers leave, each after those inside of it.
class LayerWatch {
 public:
  virtual ~LayerWatch() = default;
  virtual void AfterForward(Layer* layer, const Tensor& y) = 0;
  // `dx`: empty where nobody wants it.
  virtual void AfterBackward(Layer* layer, const Tensor& dx) = 0;
};

struct Pass {
  bool is_training = false;
  uint64_t step = 0;                              // within the epoch
  Stream dropout = Stream(0, Purpose::kDropout);  // of (seed, rank, epoch); unused in evaluation
  void* scratch = nullptr;                        // as large as the largest wish
  GroupMean* group = nullptr;                     // null: each rank normalises by itself
  GradientObserver* observer = nullptr;           // of Backward; null: nobody wants to know
  LayerWatch* watch = nullptr;                    // null: nobody wants to know
  // Of Forward: it ran on the same numbers in this step already, for what it left then is gone.
  // What a layer kept for itself is still there, and what it counted is counted.
  bool is_repeated = false;
  bool wants_dx = true;  // of Backward: whether anybody needs the gradient of what the layer read
};

}  // namespace assay

#endif  // WORKER_ENGINE_PASS_H_
