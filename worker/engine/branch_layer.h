// Branches that read one input and whose results are joined. With these and SequenceLayer every
// network without loops is a list of layers, and no graph is needed.

#ifndef WORKER_ENGINE_BRANCH_LAYER_H_
#define WORKER_ENGINE_BRANCH_LAYER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"

#include "worker/engine/backend.h"
#include "worker/engine/layer.h"
#include "worker/engine/sequence_layer.h"

namespace assay {

// y = join(branch 0 (x), branch 1 (x), ...), then ReLU if asked. No branch may begin with a layer
// that works in place. Needs a backend with Backend::maps().
class BranchLayer : public Layer {
 public:
  enum class Join {
    kSum,     // results of equal shape
    kConcat,  // of equal shape but for the channels, which lie one after the other
  };

  // At least one branch; all begin with a tensor of shape `input`.
  BranchLayer(Backend* backend, const Shape& input, Join join, bool relu,
              std::vector<std::unique_ptr<SequenceLayer>> branches);

  Shape output() const override { return output_; }
  std::vector<Parameter*> parameters() override;
  std::vector<Buffer*> buffers() override;
  void ParametersChanged() override;
  LayerLiveness liveness() const override;
  std::vector<SequenceLayer*> sequences() override;
  absl::Status Plan(LayerMemory memory, bool wants_dx) override;
  Tensor Forward(const Tensor& x, const Pass& pass) override;
  Tensor Backward(const Tensor& x, const Tensor& dy, const Pass& pass) override;
  LayerCost Cost(const Shape& input, bool wants_dx) override;

 private:
  std::vector<int64_t> JoinTimeSteps() const;
  std::optional<size_t> FindAdding() const;
  void TakeSummand(size_t branch, const Tensor& summand, bool relu, const Tensor& sum);
  Tensor PartOf(const Tensor& dy, size_t branch, int64_t first_channel);

  Backend* const backend_;
  const Shape input_;
  const Join join_;
  const bool relu_;
  const std::vector<std::unique_ptr<SequenceLayer>> branches_;
  const Shape output_;
  std::optional<size_t> adding_;  // the branch whose last layer makes the sum in training
  Tensor y_;                      // output_
  Tensor dx_;                     // input_; empty if nobody wants it
  Tensor first_;                  // of the summands, until the second is there
  std::vector<Tensor> parts_;  // the gradient that each branch may overwrite: shape of its result
};

}  // namespace assay

#endif  // WORKER_ENGINE_BRANCH_LAYER_H_
