#include "worker/engine/backends/cuda/device/cudnn_descriptor.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

namespace assay::cuda {
namespace {

constexpr int64_t kAlignment = 16;  // of every tensor, in bytes

// One number for each axis of space, the last of D, H, W.
std::vector<int64_t> InSpace(const std::array<int64_t, 3>& all, int dimensions) {
  return std::vector<int64_t>(all.end() - dimensions, all.end());
}

// Batch and channels (or what takes their place), then as above.
std::vector<int64_t> InTensor(const std::array<int64_t, 5>& all, int dimensions) {
  std::vector<int64_t> values = {all[0], all[1]};
  values.insert(values.end(), all.end() - dimensions, all.end());
  return values;
}

struct TensorKind {
  int64_t id;
  cudnnDataType_t type;
  bool is_virtual = false;  // exists only between two operations of a graph
};

Fault MakeTensor(const TensorKind& kind, const std::vector<int64_t>& extents,
                 const std::vector<int64_t>& strides, Descriptor* tensor) {
  *tensor = Descriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  return tensor->Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, kind.id)
      .Set(CUDNN_ATTR_TENSOR_DATA_TYPE, kind.type)
      .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment)
      .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, extents)
      .Set(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &kind.is_virtual)
      .Finalize("tensor descriptor");
}

Fault MakeConvolutionDescriptor(const ConvolutionProblem& problem, Descriptor* convolution) {
  const int dimensions = problem.dimensions;
  constexpr cudnnConvolutionMode_t kMode = CUDNN_CROSS_CORRELATION;
  *convolution = Descriptor(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  return convolution->Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &kMode)
      .Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{dimensions})
      .Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, InSpace(problem.before, dimensions))
      .Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, InSpace(problem.after, dimensions))
      .Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, InSpace(problem.dilation, dimensions))
      .Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, InSpace(problem.stride, dimensions))
      .Finalize("convolution descriptor");
}

// How the three directions name what they have in common.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t convolution, x, w, y, alpha, beta;
};

OperationNames NamesOf(Direction direction) {
  switch (direction) {
    case Direction::kBackwardData:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Direction::kBackwardWeights:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    case Direction::kForward:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
}

// The attribute is deprecated in favour of descriptions of a device; every cuDNN 9 has it.
constexpr auto kGraphHandle = static_cast<cudnnBackendAttributeName_t>(800);

// Channels last, one value after the other.
std::array<int64_t, 5> PackedStrides(const std::array<int64_t, 5>& e) {
  return {e[1] * e[2] * e[3] * e[4], 1, e[1] * e[3] * e[4], e[1] * e[4], e[1]};
}

// Between the operations of an epilogue numbers are float32, but what is pooled, which is the last
// that is computed and as it will be stored.
constexpr int64_t kFirstVirtual = 10;

// Windows of two along each of three axes, side by side.
Fault MakePooling(Descriptor* pooling) {
  constexpr int64_t kDimensions = 3;
  constexpr cudnnResampleMode_t kMode = CUDNN_RESAMPLE_MAXPOOL;
  constexpr cudnnPaddingMode_t kPadding = CUDNN_NEG_INF_PAD;
  const std::vector<cudnnFraction_t> twos(kDimensions, {2, 1}), zeros(kDimensions, {0, 1});
  const auto set = [&](cudnnBackendAttributeName_t name, const std::vector<cudnnFraction_t>& all) {
    pooling->Set(name, CUDNN_TYPE_FRACTION, kDimensions, all.data());
  };
  *pooling = Descriptor(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
  pooling->Set(CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, 1, &kMode)
      .Set(CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_DATA_FLOAT)
      .Set(CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, 1, &kPadding)
      .Set(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, kDimensions);
  set(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, twos);
  set(CUDNN_ATTR_RESAMPLE_STRIDES, twos);
  set(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, zeros);
  set(CUDNN_ATTR_RESAMPLE_POST_PADDINGS, zeros);
  return pooling->Finalize("pooling descriptor");
}

// The operations of a convolution and what follows it, in order.
class ConvolutionGraph {
 public:
  explicit ConvolutionGraph(const ConvolutionProblem& problem)
      : problem_(problem),
        type_(problem.precision == Precision::kBfloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT) {}

  Fault AddConvolution() {
    Descriptor x, w, convolution;
    Fault fault = Tensor({kTensorX, type_}, problem_.x, problem_.x_strides, &x);
    if (fault.ok()) fault = Tensor({kTensorW, type_}, problem_.w, problem_.w_strides, &w);
    const bool is_y = problem_.epilogue == Epilogue::kNone;
    if (fault.ok()) fault = Result(is_y ? Rounded::kAsY : Rounded::kNot, &last_);
    if (fault.ok()) fault = MakeConvolutionDescriptor(problem_, &convolution);
    if (!fault.ok()) return fault;
    const OperationNames names = NamesOf(problem_.direction);
    Descriptor& operation = operations_.emplace_back(names.type);
    return operation.Set(names.convolution, convolution)
        .Set(names.x, x)
        .Set(names.w, w)
        .Set(names.y, last_)
        .Set(names.alpha, 1.0F)
        .Set(names.beta, 0.0F)
        .Finalize("convolution operation");
  }

  Fault AddEpilogue() {
    if (problem_.epilogue == Epilogue::kNone) return {};
    if (problem_.epilogue == Epilogue::kLeakyPool) return AddLeakyPool();
    const bool has_relu = problem_.epilogue == Epilogue::kAffineRelu;
    Descriptor factor, addend;
    Fault fault = Channels(kTensorFactor, &factor);
    if (fault.ok()) fault = Channels(kTensorAddend, &addend);
    if (fault.ok()) fault = AddPointwise(CUDNN_POINTWISE_MUL, &factor, Rounded::kNot);
    if (fault.ok())
      fault = AddPointwise(CUDNN_POINTWISE_ADD, &addend, has_relu ? Rounded::kNot : Rounded::kAsY);
    if (fault.ok() && has_relu)
      fault = AddPointwise(CUDNN_POINTWISE_RELU_FWD, nullptr, Rounded::kAsY);
    return fault;
  }

  // Without a handle the graph can be checked, but no engines asked for.
  Fault Finalize(cudnnHandle_t handle, Descriptor* graph) const {
    std::vector<cudnnBackendDescriptor_t> raw;
    for (const Descriptor& operation : operations_)
      raw.push_back(operation.get());
    *graph = Descriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph->Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::ssize(raw),
               raw.data());
    if (handle != nullptr) graph->Set(kGraphHandle, CUDNN_TYPE_HANDLE, 1, &handle);
    return graph->Finalize("operation graph");
  }

 private:
  // What an operation leaves.
  enum class Rounded {
    kNot,      // float32 that only the next one reads
    kVirtual,  // y's number, which only the next one reads
    kAsY,      // y
  };

  Fault AddLeakyPool() {
    Descriptor addend;
    Fault fault = Channels(kTensorAddend, &addend);
    if (fault.ok()) fault = AddPointwise(CUDNN_POINTWISE_ADD, &addend, Rounded::kNot);
    if (fault.ok()) fault = AddPointwise(CUDNN_POINTWISE_RELU_FWD, nullptr, Rounded::kVirtual);
    return fault.ok() ? AddPooling() : fault;
  }

  // Of the last result.
  Fault AddPooling() {
    std::array<int64_t, 5> pooled = problem_.y;
    for (size_t axis = 2; axis < pooled.size(); ++axis)
      pooled[axis] /= 2;
    const std::array<int64_t, 5> strides = PackedStrides(pooled);
    Descriptor pooling, y, places;
    Fault fault = MakePooling(&pooling);
    if (fault.ok()) fault = Tensor({kTensorY, type_}, pooled, strides, &y);
    if (fault.ok()) fault = Tensor({kTensorPlaces, CUDNN_DATA_INT8}, pooled, strides, &places);
    if (!fault.ok()) return fault;
    return operations_.emplace_back(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR)
        .Set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, pooling)
        .Set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, last_)
        .Set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, y)
        .Set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC, places)
        .Finalize("pooling operation");
  }

  Fault Tensor(const TensorKind& kind, const std::array<int64_t, 5>& extents,
               const std::array<int64_t, 5>& strides, Descriptor* tensor) const {
    return MakeTensor(kind, InTensor(extents, problem_.dimensions),
                      InTensor(strides, problem_.dimensions), tensor);
  }

  Fault Result(Rounded rounded, Descriptor* tensor) {
    const TensorKind kind =
        rounded == Rounded::kAsY
            ? TensorKind{kTensorY, type_}
            : TensorKind{next_virtual_++, rounded == Rounded::kNot ? CUDNN_DATA_FLOAT : type_,
                         true};
    return Tensor(kind, problem_.y, problem_.y_strides, tensor);
  }

  // One float32 for each channel of y.
  Fault Channels(int64_t id, Descriptor* tensor) const {
    const int64_t channels = problem_.y[1];
    return Tensor({id, CUDNN_DATA_FLOAT}, {1, channels, 1, 1, 1},
                  {channels, 1, channels, channels, channels}, tensor);
  }

  // Of the last result and `other`, if there is one.
  Fault AddPointwise(cudnnPointwiseMode_t mode, const Descriptor* other, Rounded rounded) {
    Descriptor pointwise(CUDNN_BACKEND_POINTWISE_DESCRIPTOR), result;
    pointwise.Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode)
        .Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    const double slope = double{problem_.slope};
    if (mode == CUDNN_POINTWISE_RELU_FWD)
      pointwise.Set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, CUDNN_TYPE_DOUBLE, 1, &slope);
    Fault fault = pointwise.Finalize("pointwise descriptor");
    if (fault.ok()) fault = Result(rounded, &result);
    if (!fault.ok()) return fault;
    Descriptor& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise)
        .Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, last_)
        .Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, result);
    if (other != nullptr) operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *other);
    last_ = std::move(result);
    return operation.Finalize("pointwise operation");
  }

  const ConvolutionProblem& problem_;
  const cudnnDataType_t type_;
  std::vector<Descriptor> operations_;
  Descriptor last_;  // what the last operation leaves
  int64_t next_virtual_ = kFirstVirtual;
};

// Of a configuration; one that answers nothing if cuDNN does not give it.
Descriptor EngineOf(const Descriptor& configuration) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.get();
  int64_t count = 0;
  static_cast<void>(cudnnBackendGetAttribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                             CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw));
  return engine;
}

int64_t EngineIndexOf(const Descriptor& configuration) {
  int64_t index = -1, count = 0;
  static_cast<void>(cudnnBackendGetAttribute(EngineOf(configuration).get(),
                                             CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
                                             &count, &index));
  return index;
}

// What was chosen for each knob of the engine, by its number. cuDNN does not say how many there are
// before it gives them.
std::map<int64_t, int64_t> KnobsOf(const Descriptor& configuration) {
  constexpr size_t kMost = 2 * CUDNN_KNOB_TYPE_COUNTS;  // a later library has more kinds
  std::vector<Descriptor> choices;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (size_t i = 0; i < kMost; ++i)
    raw.push_back(choices.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR).get());
  int64_t count = 0;
  if (cudnnBackendGetAttribute(configuration.get(), CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, std::ssize(raw), &count,
                               raw.data()) != CUDNN_STATUS_SUCCESS)
    return {};
  choices.resize(std::min(kMost, static_cast<size_t>(count)));
  std::map<int64_t, int64_t> knobs;
  for (const Descriptor& choice : choices) {
    cudnnBackendKnobType_t type = {};
    int64_t value = 0, one = 0;
    static_cast<void>(cudnnBackendGetAttribute(choice.get(), CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                               CUDNN_TYPE_KNOB_TYPE, 1, &one, &type));
    static_cast<void>(cudnnBackendGetAttribute(choice.get(), CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE,
                                               CUDNN_TYPE_INT64, 1, &one, &value));
    knobs[static_cast<int64_t>(type)] = value;
  }
  return knobs;
}

}  // namespace

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  status_ = cudnnBackendCreateDescriptor(type, &descriptor_);
}

Descriptor::~Descriptor() {
  if (descriptor_ != nullptr) cudnnBackendDestroyDescriptor(descriptor_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, nullptr)), status_(other.status_) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(status_, other.status_);
  return *this;
}

Descriptor& Descriptor::Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                            int64_t count, const void* values) {
  if (status_ == CUDNN_STATUS_SUCCESS)
    status_ = cudnnBackendSetAttribute(descriptor_, name, type, count, values);
  return *this;
}

Fault Descriptor::Finalize(const char* what) {
  if (status_ == CUDNN_STATUS_SUCCESS) status_ = cudnnBackendFinalize(descriptor_);
  return FaultOf(what, status_);
}

Fault MakeConvolutionGraph(const ConvolutionProblem& problem, cudnnHandle_t handle,
                           Descriptor* graph) {
  ConvolutionGraph building(problem);
  Fault fault = building.AddConvolution();
  if (fault.ok()) fault = building.AddEpilogue();
  return fault.ok() ? building.Finalize(handle, graph) : fault;
}

Fault ProposeEngines(const Descriptor& graph, cudnnBackendHeurMode_t mode, const Descriptor* device,
                     std::vector<Descriptor>* configurations) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (device != nullptr) heuristics.Set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *device);
  Fault fault = heuristics.Finalize("engine heuristics");
  if (!fault.ok()) return fault;
  int64_t count = 0;
  RETURN_IF_FAULT("engine heuristics",
                  cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr));
  configurations->clear();
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < count; ++i) {
    configurations->emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(configurations->back().get());
  }
  if (count == 0) return {};
  int64_t filled = 0;
  RETURN_IF_FAULT(
      "engine heuristics",
      cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &filled, raw.data()));
  configurations->resize(static_cast<size_t>(std::min(count, filled)));
  return {};
}

std::vector<cudnnBackendNumericalNote_t> NumericalNotes(const Descriptor& configuration) {
  const Descriptor engine = EngineOf(configuration);
  int64_t count = 0;
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  if (cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                               CUDNN_TYPE_NUMERICAL_NOTE, std::ssize(notes), &count,
                               notes.data()) != CUDNN_STATUS_SUCCESS)
    return {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};  // unknown: the worst
  notes.resize(static_cast<size_t>(count));
  return notes;
}

std::string DescribeEngine(const Descriptor& configuration) {
  std::string text = "engine=" + std::to_string(EngineIndexOf(configuration)) + " notes=";
  const char* separator = "";
  for (const cudnnBackendNumericalNote_t note : NumericalNotes(configuration)) {
    text.append(separator).append(std::to_string(static_cast<int>(note)));
    separator = ",";
  }
  return text;
}

std::string IdentityOf(const Descriptor& configuration) {
  std::string text = "engine=" + std::to_string(EngineIndexOf(configuration));
  const char* separator = " knobs=";
  for (const auto& [knob, value] : KnobsOf(configuration)) {
    text.append(separator).append(std::to_string(knob)).append(":").append(std::to_string(value));
    separator = ",";
  }
  return text;
}

bool IsFaithful(const std::vector<cudnnBackendNumericalNote_t>& notes, Precision precision) {
  const auto has = [&](cudnnBackendNumericalNote_t note) {
    return std::find(notes.begin(), notes.end(), note) != notes.end();
  };
  if (has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) ||
      has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION))
    return false;
  if (precision == Precision::kBfloat16) return true;
  if (has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) return false;
  return precision == Precision::kTf32 || !has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
}

}  // namespace assay::cuda
