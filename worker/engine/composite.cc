#include "worker/engine/composite.h"

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"
#include "worker/engine/maps.h"

namespace assay {
namespace {

template <typename Item>
void Append(const std::vector<Item*>& items, std::vector<Item*>* all) {
  all->insert(all->end(), items.begin(), items.end());
}

Shape Joined(BranchLayer::Join join, const std::vector<std::unique_ptr<SequenceLayer>>& branches) {
  CHECK(!branches.empty());
  const Shape first = branches[0]->output();
  if (join == BranchLayer::Join::kSum) {
    for (const std::unique_ptr<SequenceLayer>& branch : branches)
      CHECK(branch->output() == first) << "branch=" << branch->output().ToString();
    return first;
  }
  int64_t channels = 0;
  for (const std::unique_ptr<SequenceLayer>& branch : branches) {
    const Shape shape = branch->output();
    CHECK(shape[0] == first[0] && shape[1] == first[1] && shape[2] == first[2])
        << "branch=" << shape.ToString() << " first=" << first.ToString();
    channels += shape[3];
  }
  return {first[0], first[1], first[2], channels};
}

}  // namespace

std::vector<Parameter*> SequenceLayer::parameters() {
  std::vector<Parameter*> all;
  for (const std::unique_ptr<Layer>& layer : layers_)
    Append(layer->parameters(), &all);
  return all;
}

std::vector<Buffer*> SequenceLayer::buffers() {
  std::vector<Buffer*> all;
  for (const std::unique_ptr<Layer>& layer : layers_)
    Append(layer->buffers(), &all);
  return all;
}

absl::Status SequenceLayer::Plan(LayerMemory memory, bool wants_dx) {
  inputs_.resize(layers_.size());
  for (const std::unique_ptr<Layer>& layer : layers_) {
    RETURN_IF_ERROR(layer->Plan(memory, wants_dx));
    wants_dx = memory.has_backward && (wants_dx || !layer->parameters().empty());
  }
  return absl::OkStatus();
}

LayerFlops SequenceLayer::flops() const {
  LayerFlops sum;
  for (const std::unique_ptr<Layer>& layer : layers_)
    sum += layer->flops();
  return sum;
}

void SequenceLayer::ParametersChanged() {
  for (const std::unique_ptr<Layer>& layer : layers_)
    layer->ParametersChanged();
}

Tensor SequenceLayer::Forward(const Tensor& x, const Pass& pass) {
  Tensor value = x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    inputs_[i] = value;
    value = layers_[i]->Forward(value, pass);
  }
  return value;
}

Tensor SequenceLayer::Backward(const Tensor&, const Tensor& dy, const Pass& pass) {
  Tensor gradient = dy;
  for (size_t i = layers_.size(); i-- > needless_ && gradient.data != nullptr;)
    gradient = layers_[i]->Backward(inputs_[i], gradient, pass);
  return gradient;
}

BranchLayer::BranchLayer(Backend* backend, const Shape& input, Join join, bool relu,
                         std::vector<std::unique_ptr<SequenceLayer>> branches)
    : backend_(backend),
      input_(input),
      join_(join),
      relu_(relu),
      branches_(std::move(branches)),
      output_(Joined(join, branches_)),
      parts_(branches_.size()),
      is_needless_(branches_.size()) {}

std::vector<Parameter*> BranchLayer::parameters() {
  std::vector<Parameter*> all;
  for (const std::unique_ptr<SequenceLayer>& branch : branches_)
    Append(branch->parameters(), &all);
  return all;
}

std::vector<Buffer*> BranchLayer::buffers() {
  std::vector<Buffer*> all;
  for (const std::unique_ptr<SequenceLayer>& branch : branches_)
    Append(branch->buffers(), &all);
  return all;
}

absl::Status BranchLayer::Plan(LayerMemory memory, bool wants_dx) {
  if (backend_->maps() == nullptr)
    return absl::InvalidArgumentError(absl::StrCat(
        "backend ", backend_->name(), " has no operations on maps; use cuda, onednn or reference"));
  const DType real = backend_->real();
  for (size_t i = 0; i < branches_.size(); ++i) {
    RETURN_IF_ERROR(branches_[i]->Plan(memory, wants_dx));
    if (memory.has_backward && (!branches_[i]->is_identity() || join_ == Join::kConcat))
      memory.activations->Reserve(branches_[i]->output(), real, &parts_[i]);
  }
  memory.activations->Reserve(output_, real, &y_);
  if (wants_dx) memory.activations->Reserve(input_, real, &dx_);
  return absl::OkStatus();
}

LayerFlops BranchLayer::flops() const {
  LayerFlops sum;
  for (const std::unique_ptr<SequenceLayer>& branch : branches_)
    sum += branch->flops();
  return sum;
}

void BranchLayer::LimitBackward(bool wants_dx) {
  if (!wants_dx) dx_ = {};
  for (size_t i = 0; i < branches_.size(); ++i) {
    branches_[i]->LimitBackward(wants_dx);
    is_needless_[i] = !wants_dx && !IsTrained(branches_[i].get());
  }
}

void BranchLayer::ParametersChanged() {
  for (const std::unique_ptr<SequenceLayer>& branch : branches_)
    branch->ParametersChanged();
}

Tensor BranchLayer::Forward(const Tensor& x, const Pass& pass) {
  MapOperations* maps = backend_->maps();
  int64_t first_channel = 0;
  for (size_t i = 0; i < branches_.size(); ++i) {
    const Tensor part = branches_[i]->Forward(x, pass);
    if (join_ == Join::kSum) {
      maps->Combine(1, part, i == 0 ? 0 : 1, y_);
    } else {
      maps->PutChannels(part, first_channel, y_);
      first_channel += part.shape[3];
    }
  }
  if (relu_) maps->Relu(y_);
  return y_;
}

// The gradient of a branch's result, in memory of its own, because the branch may overwrite it.
Tensor BranchLayer::PartOf(const Tensor& dy, size_t branch, int64_t first_channel) {
  if (parts_[branch].data == nullptr) return dy;  // the identity of a sum only reads it
  if (join_ == Join::kSum) {
    backend_->Copy(dy, parts_[branch]);
  } else {
    backend_->maps()->TakeChannels(dy, first_channel, parts_[branch]);
  }
  return parts_[branch];
}

Tensor BranchLayer::Backward(const Tensor& x, const Tensor& dy, const Pass& pass) {
  MapOperations* maps = backend_->maps();
  if (relu_) maps->ReluBackward(y_, dy);
  int64_t first_channel = 0;
  for (size_t i = 0; i < branches_.size(); ++i) {
    const int64_t channel = first_channel;
    first_channel += branches_[i]->output()[3];
    if (is_needless_[i]) continue;
    const Tensor part = PartOf(dy, i, channel);
    const Tensor gradient = branches_[i]->Backward(x, part, pass);
    if (dx_.data != nullptr) maps->Combine(1, gradient, i == 0 ? 0 : 1, dx_);
  }
  return dx_;
}

}  // namespace assay
