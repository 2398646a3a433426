#include "worker/engine/gradient_buckets.h"

#include <algorithm>

#include "common/log.h"

namespace assay {

GradientBuckets::GradientBuckets(RankAverage* average, std::span<Parameter* const> parameters,
                                 const Tensor& flat, int64_t bytes)
    : average_(average),
      parameters_(parameters.begin(), parameters.end()),
      flat_(flat),
      bytes_(bytes),
      offsets_{0},
      states_(parameters.size()) {
  CHECK(bytes > 0) << "bytes=" << bytes;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    indices_[parameters_[i]] = i;
    offsets_.push_back(offsets_.back() + parameters_[i]->shape.elements());
  }
  CHECK(offsets_.back() == flat.elements())
      << "parameters=" << offsets_.back() << " flat=" << flat.shape.ToString();
}

void GradientBuckets::Begin() {
  std::ranges::fill(states_, State::kOpen);
  open_ = static_cast<size_t>(std::ranges::count_if(
      parameters_, [](const Parameter* parameter) { return !parameter->is_frozen; }));
}

// All of them first: a bucket takes a layer's kernel and bias together.
void GradientBuckets::Final(std::span<Parameter* const> parameters) {
  std::vector<size_t> indices;
  for (const Parameter* parameter : parameters) {
    const auto found = indices_.find(parameter);
    CHECK(found != indices_.end()) << "a parameter of another model: " << parameter->name;
    State& state = states_[found->second];
    if (parameter->is_frozen || state != State::kOpen) continue;
    state = State::kFinal;
    --open_;
    indices.push_back(found->second);
  }
  for (const size_t index : indices) {
    if (states_[index] != State::kFinal) continue;
    const Run run = RunAround(index);
    if (BytesOf(run) >= bytes_) Start(run);
  }
}

void GradientBuckets::Finish() {
  CHECK(open_ == 0) << "gradients not computed: " << open_;
  for (size_t i = states_.size(); i-- > 0;)
    if (states_[i] == State::kFinal) Start(RunAround(i));
  average_->Finish();
}

// The final parameters beside each other of which `index` is one.
GradientBuckets::Run GradientBuckets::RunAround(size_t index) const {
  Run run = {index, index + 1};
  while (run.begin > 0 && states_[run.begin - 1] == State::kFinal)
    --run.begin;
  while (run.end < states_.size() && states_[run.end] == State::kFinal)
    ++run.end;
  return run;
}

int64_t GradientBuckets::BytesOf(const Run& run) const {
  return (offsets_[run.end] - offsets_[run.begin]) * static_cast<int64_t>(SizeOf(flat_.dtype));
}

void GradientBuckets::Start(const Run& run) {
  for (size_t i = run.begin; i < run.end; ++i)
    states_[i] = State::kStarted;
  average_->Start(flat_.Part(offsets_[run.begin], Shape{offsets_[run.end] - offsets_[run.begin]}));
  ++counts_.averages;
  counts_.bytes += BytesOf(run);
  if (open_ > 0) counts_.overlapped_bytes += BytesOf(run);
}

}  // namespace assay
