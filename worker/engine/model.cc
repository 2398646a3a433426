#include "worker/engine/model.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/log.h"
#include "common/random.h"
#include "common/status.h"

namespace assay {
namespace {

constexpr size_t kActivationAlignment = 64;  // a cache line, and a 512-bit vector

// Copies `values` into `tensor`, whatever its type.
void Fill(Backend* backend, const std::vector<float>& values, const Tensor& tensor) {
  if (backend->real() == DType::kFloat64) {
    const std::vector<double> wide(values.begin(), values.end());
    backend->CopyIn(wide.data(), tensor);
  } else {
    backend->CopyIn(values.data(), tensor);
  }
}

float Draw(const Parameter& parameter, const Stream& stream, uint64_t index) {
  if (parameter.init_stddev == 0) {
    const double uniform = 2 * double{stream.Uniform(index)} - 1;
    return static_cast<float>(parameter.init_value + parameter.init_limit * uniform);
  }
  const double normal = double{stream.Normal(index)};
  return static_cast<float>(parameter.init_value + parameter.init_stddev * normal);
}

}  // namespace

Model::Model(Backend* backend, const Shape& input, DType input_type)
    : backend_(backend),
      input_(input),
      input_type_(input_type),
      layers_(std::make_unique<SequenceLayer>(input)),
      values_(backend, SizeOf(backend->real())),
      gradients_(backend, SizeOf(backend->real())),
      buffer_values_(backend, SizeOf(backend->real())),
      activations_(backend, kActivationAlignment) {}

void Model::Add(std::unique_ptr<Layer> layer) {
  layers_->Add(std::move(layer));
}

absl::Status Model::PlanInto(bool has_backward, Arena* activations) {
  size_t scratch_bytes = 1;
  // Nobody asks for the gradient of the input.
  RETURN_IF_ERROR(
      layers_->Plan({activations, &scratch_bytes, has_backward, {}}, /*wants_dx=*/false));
  activations->Reserve(Shape{static_cast<int64_t>(scratch_bytes)}, DType::kUint8, &scratch_);
  return absl::OkStatus();
}

// What both ways of committing have in common: activations, and the lists of what layers own.
absl::Status Model::Plan(bool has_backward) {
  CHECK(!layers_->is_identity());
  parameters_ = layers_->parameters();
  buffers_ = layers_->buffers();
  return PlanInto(has_backward, &activations_);
}

size_t Model::BytesBesideActivations(const MemoryLimit& limit) const {
  int64_t numbers = 2 * output().elements();
  for (const Parameter* parameter : layers_->parameters())
    numbers += (2 + limit.parameter_copies) * parameter->shape.elements();
  for (const Buffer* buffer : layers_->buffers())
    numbers += buffer->shape.elements();
  return static_cast<size_t>(numbers) * SizeOf(backend_->real()) +
         static_cast<size_t>(input_.elements()) * SizeOf(input_type_);
}

absl::Status Model::Commit(const MemoryLimit& limit) {
  other_bytes_ = BytesBesideActivations(limit);
  const auto planned_bytes = [this]() -> absl::StatusOr<size_t> {
    Arena trial(backend_, kActivationAlignment);
    RETURN_IF_ERROR(PlanInto(/*has_backward=*/true, &trial));
    trial.Place();
    return other_bytes_ + trial.bytes();
  };
  if (limit.bytes > 0) {
    ASSIGN_OR_RETURN(recomputation_,
                     ChooseRecomputation(layers_.get(), input_, static_cast<size_t>(limit.bytes),
                                         planned_bytes));
  }
  RETURN_IF_ERROR(Plan(/*has_backward=*/true));
  for (Parameter* parameter : parameters_) {
    values_.Reserve(parameter->shape, backend_->real(), &parameter->value);
    gradients_.Reserve(parameter->shape, backend_->real(), &parameter->gradient);
  }
  for (Buffer* buffer : buffers_)
    buffer_values_.Reserve(buffer->shape, backend_->real(), &buffer->value);
  RETURN_IF_ERROR(Annotate(values_.Commit(), "parameters"));
  RETURN_IF_ERROR(Annotate(gradients_.Commit(), "gradients"));
  RETURN_IF_ERROR(Annotate(buffer_values_.Commit(), "buffers"));
  return Annotate(activations_.Commit(), "activations");
}

absl::Status Model::CommitForEvaluation(const Model& trained) {
  RETURN_IF_ERROR(Plan(/*has_backward=*/false));
  CHECK(parameters_.size() == trained.parameters_.size() &&
        buffers_.size() == trained.buffers_.size())
      << "other layers: " << parameters_.size() << " and " << trained.parameters_.size();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    CHECK(parameters_[i]->shape == trained.parameters_[i]->shape) << parameters_[i]->name;
    parameters_[i]->value = trained.parameters_[i]->value;
  }
  for (size_t i = 0; i < buffers_.size(); ++i)
    buffers_[i]->value = trained.buffers_[i]->value;
  return Annotate(activations_.Commit(&trained.activations_), "activations of the evaluation");
}

void Model::Initialize(uint64_t seed) {
  const Stream stream(seed, Purpose::kInit);
  uint64_t index = 0;
  for (const Parameter* parameter : parameters_) {
    const size_t count = static_cast<size_t>(parameter->shape.elements());
    std::vector<float> values(count);
    for (float& value : values)
      value = Draw(*parameter, stream, index++);
    Fill(backend_, values, parameter->value);
  }
  for (const Buffer* buffer : buffers_) {
    const size_t count = static_cast<size_t>(buffer->shape.elements());
    Fill(backend_, std::vector<float>(count, static_cast<float>(buffer->init_value)),
         buffer->value);
  }
  ParametersChanged();
}

void Model::ParametersChanged() {
  layers_->ParametersChanged();
}

Tensor Model::Forward(const Tensor& input, Pass pass) {
  CHECK(input.shape == input_) << "input=" << input.shape.ToString();
  pass.scratch = scratch_.data;
  return layers_->Forward(input, pass);
}

void Model::Backward(const Tensor& dy, Pass pass) {
  pass.scratch = scratch_.data;
  pass.wants_dx = false;
  layers_->Backward({}, dy, pass);
}

// How many parameters there are from the input on up to the last of `layer`.
absl::StatusOr<size_t> Model::ParametersThrough(absl::string_view layer) const {
  const std::string prefix = absl::StrCat(layer, "/");
  size_t count = 0;
  std::vector<std::string> names;  // of whole layers, in order
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const std::string& name = parameters_[i]->name;
    if (absl::StartsWith(name, prefix)) count = i + 1;
    const std::string top = name.substr(0, name.find('/'));
    if (std::find(names.begin(), names.end(), top) == names.end()) names.push_back(top);
  }
  if (count > 0 && count < parameters_.size()) return count;
  return absl::InvalidArgumentError(
      absl::StrCat(count == 0 ? "there is no layer \"" : "nothing would be left to train behind \"",
                   layer, "\"; the layers are ", absl::StrJoin(names, ", ")));
}

absl::Status Model::FreezeThrough(absl::string_view layer) {
  ASSIGN_OR_RETURN(const size_t count, ParametersThrough(layer));
  int64_t elements = 0;
  for (size_t i = 0; i < count; ++i) {
    parameters_[i]->is_frozen = true;
    elements += parameters_[i]->shape.elements();
  }
  frozen_elements_ = std::max(frozen_elements_, elements);
  return absl::OkStatus();
}

Tensor Model::Trained(const Tensor& flat) const {
  CHECK(flat.elements() == parameter_count()) << "flat=" << flat.shape.ToString();
  const size_t offset = static_cast<size_t>(frozen_elements_) * SizeOf(flat.dtype);
  return {static_cast<std::byte*>(flat.data) + offset, Shape{flat.elements() - frozen_elements_},
          flat.dtype};
}

Shape Model::output() const {
  return layers_->output();
}

int64_t Model::parameter_count() const {
  int64_t count = 0;
  for (const Parameter* parameter : parameters_)
    count += parameter->shape.elements();
  return count;
}

LayerFlops Model::flops() const {
  return layers_->Cost(input_, /*wants_dx=*/false).flops;
}

LayerTraffic Model::traffic_bytes() const {
  const LayerTraffic numbers = layers_->Cost(input_, /*wants_dx=*/false).traffic;
  const auto size = static_cast<double>(SizeOf(backend_->real()));
  // The first layer reads numbers of another size.
  const double excess =
      (size - static_cast<double>(SizeOf(input_type_))) * static_cast<double>(input_.elements());
  return {.forward = size * numbers.forward - excess, .backward = size * numbers.backward};
}

int64_t Model::buffer_elements() const {
  int64_t count = 0;
  for (const Buffer* buffer : buffers_)
    count += buffer->shape.elements();
  return count;
}

}  // namespace assay
