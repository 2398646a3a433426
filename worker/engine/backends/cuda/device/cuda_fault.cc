#include "worker/engine/backends/cuda/device/cuda_fault.h"

namespace assay::cuda {
namespace {

constexpr char kDriverRemedy[] =
    "; install NVIDIA's driver, version 580 or newer, on a machine with a GPU, or choose backend "
    "\"onednn\"";

FaultKind KindOf(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return FaultKind::kNone;
    case cudaErrorMemoryAllocation:
      return FaultKind::kOutOfMemory;
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorStubLibrary:
    case cudaErrorInitializationError:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorSystemNotReady:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorNoKernelImageForDevice:
      return FaultKind::kAbsent;
    default:
      return FaultKind::kFailed;
  }
}

// cuDNN's codes come in families of a thousand; the fourth is "not supported".
FaultKind KindOf(cudnnStatus_t status) {
  const int code = static_cast<int>(status);
  if (code == 0) return FaultKind::kNone;
  if (code / 1000 == 3) return FaultKind::kUnsupported;
  return FaultKind::kFailed;
}

FaultKind KindOf(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return FaultKind::kNone;
    case CUBLAS_STATUS_ALLOC_FAILED:
      return FaultKind::kOutOfMemory;
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return FaultKind::kUnsupported;
    default:
      return FaultKind::kFailed;
  }
}

}  // namespace

Fault FaultOf(const std::string& what, cudaError_t error) {
  if (error == cudaSuccess) return {};
  const FaultKind kind = KindOf(error);
  return {.kind = kind,
          .text = what + ": " + cudaGetErrorString(error) +
                  (kind == FaultKind::kAbsent ? kDriverRemedy : "")};
}

Fault FaultOf(const std::string& what, cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) return {};
  char detail[512] = "";
  cudnnGetLastErrorString(detail, sizeof(detail));
  return {.kind = KindOf(status),
          .text = what + ": cuDNN: " + cudnnGetErrorString(status) + " " + detail};
}

Fault FaultOf(const std::string& what, cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  return {.kind = KindOf(status), .text = what + ": " + cublasLtGetStatusString(status)};
}

}  // namespace assay::cuda
