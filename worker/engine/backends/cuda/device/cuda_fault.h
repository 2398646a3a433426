// From the error codes of CUDA's libraries to faults.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_DEVICE_CUDA_FAULT_H_
#define WORKER_ENGINE_BACKENDS_CUDA_DEVICE_CUDA_FAULT_H_

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn_graph.h>

#include <string>

#include "worker/engine/backends/cuda/device.h"

namespace assay::cuda {

Fault FaultOf(const std::string& what, cudaError_t error);
Fault FaultOf(const std::string& what, cudnnStatus_t status);
Fault FaultOf(const std::string& what, cublasStatus_t status);

}  // namespace assay::cuda

// Returns from a function that returns Fault, if `expr`, which is named by `what`, is not a
// success.
#define RETURN_IF_FAULT(what, expr)                                            \
  do {                                                                         \
    ::assay::cuda::Fault return_if_fault = ::assay::cuda::FaultOf(what, expr); \
    if (!return_if_fault.ok()) return return_if_fault;                         \
  } while (false)

#endif  // WORKER_ENGINE_BACKENDS_CUDA_DEVICE_CUDA_FAULT_H_
