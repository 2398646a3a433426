// Layers made of layers: a sequence, and branches that read one input and whose results are joined.
//
// With these two every network without loops is a list of layers: forward goes through the list,
// backward through the reversed list, and no graph is needed.

#ifndef WORKER_ENGINE_COMPOSITE_H_
#define WORKER_ENGINE_COMPOSITE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "worker/engine/backend.h"
#include "worker/engine/layer.h"

namespace assay {

// One layer after the other. Without layers: the identity.
class SequenceLayer : public Layer {
 public:
  explicit SequenceLayer(const Shape& input) : input_(input) {}

  // Before Plan only.
  void Add(std::unique_ptr<Layer> layer) { layers_.push_back(std::move(layer)); }
  bool is_identity() const { return layers_.empty(); }

  Shape output() const override { return layers_.empty() ? input_ : layers_.back()->output(); }
  std::vector<Parameter*> parameters() override;
  std::vector<Buffer*> buffers() override;
  int64_t time_steps() const override;
  InPlace in_place() const override;
  absl::Status Plan(LayerMemory memory, bool wants_dx) override;
  LayerFlops flops() const override;
  LayerTraffic Traffic(const Shape& input, bool wants_dx) override {
    return TrafficOfSequence(layers_, input, wants_dx);
  }
  void LimitBackward(bool wants_dx) override { needless_ = LimitSequence(layers_, wants_dx); }
  void ParametersChanged() override;
  bool can_add() const override { return !layers_.empty() && layers_.back()->can_add(); }
  Tensor Forward(const Tensor& x, const Pass& pass) override;
  void ForwardAdded(const Tensor& x, const Pass& pass, const Addition& addition) override;
  Tensor Backward(const Tensor& x, const Tensor& dy, const Pass& pass) override;

 private:
  const Shape input_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<Tensor> inputs_;  // of each layer in the last Forward
  size_t needless_ = 0;         // so many of the first layers need no Backward
};

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
  int64_t time_steps() const override;
  absl::Status Plan(LayerMemory memory, bool wants_dx) override;
  LayerFlops flops() const override;
  LayerTraffic Traffic(const Shape& input, bool wants_dx) override;
  void LimitBackward(bool wants_dx) override;
  void ParametersChanged() override;
  Tensor Forward(const Tensor& x, const Pass& pass) override;
  Tensor Backward(const Tensor& x, const Tensor& dy, const Pass& pass) override;

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
  std::vector<bool> is_needless_;  // of each branch: it needs no Backward
};

}  // namespace assay

#endif  // WORKER_ENGINE_COMPOSITE_H_
