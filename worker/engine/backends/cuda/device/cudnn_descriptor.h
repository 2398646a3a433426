// cuDNN's graph API: an operation is a tree of descriptors, from which cuDNN proposes engines and
// makes a plan.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_DEVICE_CUDNN_DESCRIPTOR_H_
#define WORKER_ENGINE_BACKENDS_CUDA_DEVICE_CUDNN_DESCRIPTOR_H_

#include <cudnn_graph.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "worker/engine/backends/cuda/device.h"
#include "worker/engine/backends/cuda/device/cuda_fault.h"

namespace assay::cuda {

// Owns one descriptor. Setters after the first fault do nothing; Finalize reports it.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(cudnnBackendDescriptorType_t type);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;

  cudnnBackendDescriptor_t get() const { return descriptor_; }

  Descriptor& Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                  const void* values);
  Descriptor& Set(cudnnBackendAttributeName_t name, int64_t value) {
    return Set(name, CUDNN_TYPE_INT64, 1, &value);
  }
  Descriptor& Set(cudnnBackendAttributeName_t name, std::span<const int64_t> values) {
    return Set(name, CUDNN_TYPE_INT64, std::ssize(values), values.data());
  }
  Descriptor& Set(cudnnBackendAttributeName_t name, float value) {
    return Set(name, CUDNN_TYPE_FLOAT, 1, &value);
  }
  Descriptor& Set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
    return Set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
  }
  Descriptor& Set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    return Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
  }

  Fault Finalize(const char* what);

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
  cudnnStatus_t status_ = CUDNN_STATUS_SUCCESS;
};

// Names of the tensors of a convolution in its graph; those behind the first three belong to its
// epilogue.
inline constexpr int64_t kTensorX = 1, kTensorW = 2, kTensorY = 3, kTensorFactor = 4,
                         kTensorAddend = 5, kTensorPlaces = 6;

// The graph of one convolution and its epilogue, finalized. A null `handle` suffices to check the
// descriptors; to ask for engines it must be real.
Fault MakeConvolutionGraph(const ConvolutionProblem& problem, cudnnHandle_t handle,
                           Descriptor* graph);

// Configurations of engines that cuDNN proposes for `graph`, best first. `device`: a finalized
// CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR of the GPU; null: that of the graph's handle.
Fault ProposeEngines(const Descriptor& graph, cudnnBackendHeurMode_t mode, const Descriptor* device,
                     std::vector<Descriptor>* configurations);

// What cuDNN says about the numerics of a configuration's engine.
std::vector<cudnnBackendNumericalNote_t> NumericalNotes(const Descriptor& configuration);

// Engine and notes of a configuration, by their numbers in cudnn_graph.h: "engine=22 notes=0,2".
std::string DescribeEngine(const Descriptor& configuration);

// Engine and choices of a configuration, by their numbers in cudnn_graph.h and in the order of the
// knobs: "engine=22 knobs=2:3,5:1"; "engine=0" for one that has nothing to choose.
std::string IdentityOf(const Descriptor& configuration);

// Whether an engine with these notes keeps our promises: equal bits every time, sums in float32,
// factors rounded to nothing below the precision, and in float32 not at all.
bool IsFaithful(const std::vector<cudnnBackendNumericalNote_t>& notes, Precision precision);

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_DEVICE_CUDNN_DESCRIPTOR_H_
