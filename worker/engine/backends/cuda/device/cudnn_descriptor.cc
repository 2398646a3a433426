#include "worker/engine/backends/cuda/device/cudnn_descriptor.h"

#include <algorithm>
#include <array>
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

Fault MakeTensor(int64_t id, cudnnDataType_t type, const std::vector<int64_t>& extents,
                 const std::vector<int64_t>& strides, Descriptor* tensor) {
  *tensor = Descriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  return tensor->Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .Set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
      .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment)
      .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, extents)
      .Set(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .Finalize("tensor descriptor");
}

Fault MakeConvolutionDescriptor(const ConvolutionProblem& problem, Descriptor* convolution) {
  const int dimensions = problem.dimensions;
  constexpr cudnnConvolutionMode_t kMode = CUDNN_CROSS_CORRELATION;
  *convolution = Descriptor(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  return convolution->Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &kMode)
      .Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{dimensions})
      .Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, InSpace(problem.padding, dimensions))
      .Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, InSpace(problem.padding, dimensions))
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
  const cudnnDataType_t type =
      problem.precision == Precision::kBfloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  Descriptor x, w, y, convolution;
  const auto tensor = [&](int64_t id, const std::array<int64_t, 5>& extents,
                          const std::array<int64_t, 5>& strides, Descriptor* result) {
    return MakeTensor(id, type, InTensor(extents, problem.dimensions),
                      InTensor(strides, problem.dimensions), result);
  };
  Fault fault = tensor(kTensorX, problem.x, problem.x_strides, &x);
  if (fault.ok()) fault = tensor(kTensorW, problem.w, problem.w_strides, &w);
  if (fault.ok()) fault = tensor(kTensorY, problem.y, problem.y_strides, &y);
  if (fault.ok()) fault = MakeConvolutionDescriptor(problem, &convolution);
  if (!fault.ok()) return fault;
  const OperationNames names = NamesOf(problem.direction);
  Descriptor operation(names.type);
  fault = operation.Set(names.convolution, convolution)
              .Set(names.x, x)
              .Set(names.w, w)
              .Set(names.y, y)
              .Set(names.alpha, 1.0F)
              .Set(names.beta, 0.0F)
              .Finalize("convolution operation");
  if (!fault.ok()) return fault;
  *graph = Descriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph->Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  if (handle != nullptr) graph->Set(kGraphHandle, CUDNN_TYPE_HANDLE, 1, &handle);
  return graph->Finalize("operation graph");
}

Fault ProposeEngines(const Descriptor& graph, cudnnBackendHeurMode_t mode,
                     std::vector<Descriptor>* configurations) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  Fault fault = heuristics.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
                    .Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode)
                    .Finalize("engine heuristics");
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
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.get();
  int64_t count = 0;
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  if (cudnnBackendGetAttribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                               &raw) != CUDNN_STATUS_SUCCESS ||
      cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                               CUDNN_TYPE_NUMERICAL_NOTE, std::ssize(notes), &count,
                               notes.data()) != CUDNN_STATUS_SUCCESS)
    return {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};  // unknown: the worst
  notes.resize(static_cast<size_t>(count));
  return notes;
}

bool IsFaithful(const std::vector<cudnnBackendNumericalNote_t>& notes, Precision precision) {
  const auto has = [&](cudnnBackendNumericalNote_t note) {
    return std::find(notes.begin(), notes.end(), note) != notes.end();
  };
  if (has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return false;
  if (precision != Precision::kFloat32) return true;
  return !has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) && !has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) &&
         !has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
}

}  // namespace assay::cuda
