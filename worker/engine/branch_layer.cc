#include "worker/engine/branch_layer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"
#include "worker/engine/maps.h"

namespace assay {
namespace {

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

BranchLayer::BranchLayer(Backend* backend, const Shape& input, Join join, bool relu,
                         std::vector<std::unique_ptr<SequenceLayer>> branches)
    : backend_(backend),
      input_(input),
      join_(join),
      relu_(relu),
      branches_(std::move(branches)),
      output_(Joined(join, branches_)),
      parts_(branches_.size()) {}

std::vector<Parameter*> BranchLayer::parameters() {
  std::vector<Parameter*> all;
  for (const std::unique_ptr<SequenceLayer>& branch : branches_)
    for (Parameter* parameter : branch->parameters())
      all.push_back(parameter);
  return all;
}

std::vector<Buffer*> BranchLayer::buffers() {
  std::vector<Buffer*> all;
  for (const std::unique_ptr<SequenceLayer>& branch : branches_)
    for (Buffer* buffer : branch->buffers())
      all.push_back(buffer);
  return all;
}

// Each branch has a time step before it, in which Backward gives it its part of dy, and one behind
// it, in which its result or gradient is joined with the others'.
LayerLiveness BranchLayer::liveness() const {
  LayerLiveness all = {.time_steps = JoinTimeSteps().back() + 1};
  for (const std::unique_ptr<SequenceLayer>& branch : branches_)
    all.waits_for_ranks = all.waits_for_ranks || branch->liveness().waits_for_ranks;
  return all;
}

std::vector<SequenceLayer*> BranchLayer::sequences() {
  std::vector<SequenceLayer*> all;
  for (const std::unique_ptr<SequenceLayer>& branch : branches_)
    for (SequenceLayer* sequence : branch->sequences())
      all.push_back(sequence);
  return all;
}

// When the branches are joined, counted from the first time step of either pass.
std::vector<int64_t> BranchLayer::JoinTimeSteps() const {
  std::vector<int64_t> joins;
  int64_t next = 0;
  for (const std::unique_ptr<SequenceLayer>& branch : branches_) {
    next += branch->liveness().time_steps + 2;
    joins.push_back(next - 1);
  }
  return joins;
}

// Of two branches one may write the sum, if the other's result is there by then.
std::optional<size_t> BranchLayer::FindAdding() const {
  if (join_ != Join::kSum || branches_.size() != 2) return std::nullopt;
  if (branches_[1]->adding() != nullptr) return 1;
  if (branches_[0]->adding() != nullptr && branches_[1]->is_identity()) return 0;
  return std::nullopt;
}

absl::Status BranchLayer::Plan(LayerMemory memory, bool wants_dx) {
  if (backend_->maps() == nullptr)
    return absl::InvalidArgumentError(absl::StrCat(
        "backend ", backend_->name(), " has no operations on maps; use cuda, onednn or reference"));
  const LayerTimes own = memory.times;
  const std::vector<int64_t> joins = JoinTimeSteps();
  // The first summand waits for the second.
  const int64_t first_sum = joins[std::min(size_t{1}, joins.size() - 1)];
  const bool is_sum = join_ == Join::kSum;
  const DType type = backend_->map_type();
  Arena* const arena = memory.activations;
  for (size_t i = 0; i < branches_.size(); ++i) {
    const int64_t start = joins[i] - branches_[i]->liveness().time_steps;
    const int64_t summed = std::max(joins[i], first_sum);
    memory.times = {.forward = own.forward + start,
                    .backward = own.backward + start,
                    .result_until = own.forward + (is_sum ? summed : joins[i]),
                    .gradient_until = own.backward + summed,
                    .repetition = own.repetition};
    memory.times.repetition.first_result_until = memory.times.result_until - own.repetition.delay;
    RETURN_IF_ERROR(branches_[i]->Plan(memory, wants_dx));
    if (memory.has_backward && (!branches_[i]->is_identity() || !is_sum))
      arena->ReserveShared(branches_[i]->output(), type,
                           {{own.backward + start - 1, own.backward + summed}}, &parts_[i]);
  }
  memory.times = own;
  adding_ = FindAdding();
  const int64_t y_from = adding_.has_value() ? joins[*adding_] - 1 : is_sum ? first_sum : joins[0];
  memory.ReserveResultAt(output_, type, own.forward + y_from,
                         relu_ && memory.has_backward ? own.backward : own.forward + y_from, &y_);
  if (wants_dx)
    arena->ReserveShared(input_, type, {{own.backward + first_sum, own.gradient_until}}, &dx_);
  return absl::OkStatus();
}

// That of the branches and of joining them, where each part is read or written once more.
LayerCost BranchLayer::Cost(const Shape& input, bool wants_dx) {
  LayerCost sum;
  int64_t parts = 0, inputs = 0;
  for (const std::unique_ptr<SequenceLayer>& branch : branches_) {
    sum += branch->Cost(input, wants_dx);
    parts += branch->output().elements();
    inputs += input.elements();
  }
  const int64_t y = output_.elements();
  int64_t backward = wants_dx || IsTrained(this) ? y + parts : 0;
  if (wants_dx) backward += inputs + input.elements();
  return sum += {.flops = {},
                 .traffic = {.forward = static_cast<double>(parts + y),
                             .backward = static_cast<double>(backward)}};
}

void BranchLayer::ParametersChanged() {
  for (const std::unique_ptr<SequenceLayer>& branch : branches_)
    branch->ParametersChanged();
}

// The sum is made when its second summand is there; ReLU follows the last one.
void BranchLayer::TakeSummand(size_t branch, const Tensor& summand, bool relu, const Tensor& sum) {
  MapOperations* maps = backend_->maps();
  const bool has_relu = relu && branch + 1 == branches_.size();
  if (branch == 0) first_ = summand;
  if (branch == 0 && branches_.size() > 1) return;
  if (branch == 1) return maps->Sum(first_, summand, has_relu, sum);
  maps->Combine(1, summand, branch == 0 ? 0 : 1, sum);
  if (has_relu) maps->Relu(sum);
}

Tensor BranchLayer::Forward(const Tensor& x, const Pass& pass) {
  if (adding_.has_value() && pass.is_training) {
    const Tensor other = *adding_ == 0 ? x : branches_[0]->Forward(x, pass);
    branches_[*adding_]->ForwardAdded(x, pass, {other, relu_, y_});
    return y_;
  }
  MapOperations* maps = backend_->maps();
  int64_t first_channel = 0;
  for (size_t i = 0; i < branches_.size(); ++i) {
    const Tensor part = branches_[i]->Forward(x, pass);
    if (join_ == Join::kSum) {
      TakeSummand(i, part, relu_, y_);
    } else {
      maps->PutChannels(part, first_channel, y_);
      first_channel += part.shape[3];
    }
  }
  if (relu_ && join_ == Join::kConcat) maps->Relu(y_);
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
  if (relu_) backend_->maps()->ReluBackward(y_, dy);
  int64_t first_channel = 0;
  for (size_t i = 0; i < branches_.size(); ++i) {
    const int64_t channel = first_channel;
    first_channel += branches_[i]->output()[3];
    if (!pass.wants_dx && !IsTrained(branches_[i].get())) continue;
    const Tensor part = PartOf(dy, i, channel);
    const Tensor gradient = branches_[i]->Backward(x, part, pass);
    if (pass.wants_dx) TakeSummand(i, gradient, false, dx_);
  }
  return pass.wants_dx ? dx_ : Tensor{};
}

}  // namespace assay
