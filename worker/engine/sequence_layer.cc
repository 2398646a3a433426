#include "worker/engine/sequence_layer.h"

#include <algorithm>

#include "common/log.h"
#include "common/status.h"
#include "worker/engine/recomputed_layer.h"

namespace assay {

std::vector<Parameter*> SequenceLayer::parameters() {
  std::vector<Parameter*> all;
  for (const std::unique_ptr<Layer>& layer : layers_)
    for (Parameter* parameter : layer->parameters())
      all.push_back(parameter);
  return all;
}

std::vector<Buffer*> SequenceLayer::buffers() {
  std::vector<Buffer*> all;
  for (const std::unique_ptr<Layer>& layer : layers_)
    for (Buffer* buffer : layer->buffers())
      all.push_back(buffer);
  return all;
}

void SequenceLayer::ParametersChanged() {
  for (const std::unique_ptr<Layer>& layer : layers_)
    layer->ParametersChanged();
}

LayerLiveness SequenceLayer::liveness() const {
  LayerLiveness all = {.time_steps = 0, .forward_in_place = true, .backward_in_place = true};
  for (const std::unique_ptr<Layer>& layer : layers_) {
    const LayerLiveness one = layer->liveness();
    all.time_steps += one.time_steps;
    all.forward_in_place = all.forward_in_place && one.forward_in_place;
    all.backward_in_place = all.backward_in_place && one.backward_in_place;
    all.waits_for_ranks = all.waits_for_ranks || one.waits_for_ranks;
  }
  return all;
}

void SequenceLayer::Recompute(const std::vector<LayerRange>& ranges) {
  std::vector<std::unique_ptr<Layer>> plain;
  for (std::unique_ptr<Layer>& layer : layers_) {
    const auto made = std::find(recomputed_.begin(), recomputed_.end(), layer.get());
    if (made == recomputed_.end()) {
      plain.push_back(std::move(layer));
    } else {
      for (std::unique_ptr<Layer>& inner : (*made)->layers_)
        plain.push_back(std::move(inner));
    }
  }
  recomputed_.clear();
  layers_.clear();
  size_t next = 0;
  const auto add_up_to = [&](size_t end, SequenceLayer* to) {
    while (next < end)
      to->Add(std::move(plain[next++]));
  };
  for (const LayerRange& range : ranges) {
    CHECK(next <= range.begin && range.begin < range.end && range.end <= plain.size())
        << "begin=" << range.begin << " end=" << range.end << " layers=" << plain.size();
    add_up_to(range.begin, this);
    auto one = std::make_unique<RecomputedLayer>(output());
    add_up_to(range.end, one.get());
    recomputed_.push_back(one.get());
    Add(std::move(one));
  }
  add_up_to(plain.size(), this);
}

std::vector<LayerTimes> SequenceLayer::TimesOfLayers(const LayerTimes& all,
                                                     bool has_backward) const {
  std::vector<LayerLiveness> live;
  for (const std::unique_ptr<Layer>& layer : layers_)
    live.push_back(layer->liveness());
  std::vector<LayerTimes> times(layers_.size(), all);
  const size_t last = layers_.size() - 1;  // unused where there is none
  for (size_t i = 1; i < times.size(); ++i) {
    times[i].forward = times[i - 1].forward + live[i - 1].time_steps;
    times[last - i].backward = times[last - i + 1].backward + live[last - i + 1].time_steps;
  }
  for (size_t i = times.size(); i-- > 1;) {  // the reader of each result is known before it
    const int64_t start = has_backward ? times[i].backward : times[i].forward;
    const int64_t until = start + live[i].time_steps - 1;
    times[i - 1].result_until =
        live[i].forward_in_place ? std::max(until, times[i].result_until) : until;
    LayerTimes::Repetition& before = times[i - 1].repetition;
    before.first_result_until = times[i].forward - before.delay + live[i].time_steps - 1;
    if (live[i].forward_in_place)
      before.first_result_until =
          std::max(before.first_result_until, times[i].repetition.first_result_until);
  }
  for (size_t i = 1; i < times.size(); ++i) {
    const int64_t until = times[i - 1].backward + live[i - 1].time_steps - 1;
    times[i].gradient_until =
        live[i - 1].backward_in_place ? std::max(until, times[i - 1].gradient_until) : until;
  }
  return times;
}

absl::Status SequenceLayer::Plan(LayerMemory memory, bool wants_dx) {
  inputs_.resize(layers_.size());
  const std::vector<LayerTimes> times = TimesOfLayers(memory.times, memory.has_backward);
  for (size_t i = 0; i < layers_.size(); ++i) {
    memory.times = times[i];
    RETURN_IF_ERROR(layers_[i]->Plan(memory, wants_dx));
    wants_dx = memory.has_backward && (wants_dx || !layers_[i]->parameters().empty());
  }
  return absl::OkStatus();
}

Tensor SequenceLayer::ForwardThrough(size_t count, const Tensor& x, const Pass& pass) {
  Tensor value = x;
  for (size_t i = 0; i < layers_.size() && i <= count; ++i) {
    inputs_[i] = value;
    if (i == count) break;
    value = layers_[i]->Forward(value, pass);
    if (pass.watch != nullptr) pass.watch->AfterForward(layers_[i].get(), value);
  }
  return value;
}

Tensor SequenceLayer::Forward(const Tensor& x, const Pass& pass) {
  return ForwardThrough(layers_.size(), x, pass);
}

AddingLayer* SequenceLayer::adding() {
  return layers_.empty() || layers_.back()->adding() == nullptr ? nullptr : this;
}

void SequenceLayer::ForwardAdded(const Tensor& x, const Pass& pass, const Addition& addition) {
  const Tensor value = ForwardThrough(layers_.size() - 1, x, pass);
  layers_.back()->adding()->ForwardAdded(value, pass, addition);
  if (pass.watch != nullptr) pass.watch->AfterForward(layers_.back().get(), addition.y);
}

// The first layer with a parameter that training changes; past the end if there is none.
size_t SequenceLayer::FirstTrained() const {
  size_t i = 0;
  while (i < layers_.size() && !IsTrained(layers_[i].get()))
    ++i;
  return i;
}

Tensor SequenceLayer::Backward(const Tensor&, const Tensor& dy, const Pass& pass) {
  const size_t first_trained = FirstTrained();
  const size_t first = pass.wants_dx ? 0 : first_trained;
  Tensor gradient = dy;
  for (size_t i = layers_.size(); i-- > first && gradient.data != nullptr;) {
    Pass own = pass;
    own.wants_dx = pass.wants_dx || i > first_trained;
    gradient = layers_[i]->Backward(inputs_[i], gradient, own);
    if (pass.observer != nullptr) pass.observer->Final(layers_[i]->parameters());
    if (pass.watch != nullptr)
      pass.watch->AfterBackward(layers_[i].get(), own.wants_dx ? gradient : Tensor{});
  }
  return gradient;
}

LayerCost SequenceLayer::Cost(const Shape& input, bool wants_dx) {
  LayerCost sum;
  Shape shape = input;
  for (const std::unique_ptr<Layer>& layer : layers_) {
    sum += layer->Cost(shape, wants_dx);
    shape = layer->output();
    wants_dx = wants_dx || IsTrained(layer.get());
  }
  return sum;
}

}  // namespace assay
