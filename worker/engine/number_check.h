// Finds the layer that first left a number that is not finite.

#ifndef WORKER_ENGINE_NUMBER_CHECK_H_
#define WORKER_ENGINE_NUMBER_CHECK_H_

#include <string>

#include "worker/engine/backend.h"
#include "worker/engine/layer.h"
#include "worker/engine/pass.h"

namespace assay {

// Copies to the host what each layer leaves, forward and backward, and looks at every number: steps
// take many times longer, and none is recorded. Not thread-safe. `backend` must outlive it.
class NumberCheck : public LayerWatch {
 public:
  explicit NumberCheck(Backend* backend) : backend_(backend) {}

  void AfterForward(Layer* layer, const Tensor& y) override;
  void AfterBackward(Layer* layer, const Tensor& dx) override;

  // "the result (2, 8, 8, 16) of conv2 has nan at 17"; empty: all were finite. Begins anew.
  std::string TakeFinding();

 private:
  void Look(const std::string& what, const Tensor& values, const std::string& of);

  Backend* const backend_;
  std::string last_named_ = "the input";  // layer with parameters
  std::string finding_;
};

}  // namespace assay

#endif  // WORKER_ENGINE_NUMBER_CHECK_H_
