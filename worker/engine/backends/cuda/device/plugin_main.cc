// What libassay_cuda.so exports (device.h).

#include <memory>

#include "worker/engine/backends/cuda/device.h"
#include "worker/engine/backends/cuda/device/cuda_device.h"

extern "C" {

__attribute__((visibility("default"))) int AssayCudaInterface() {
  return assay::cuda::kDeviceInterface;
}

__attribute__((visibility("default"))) int AssayCountCudaDevices(assay::cuda::Fault* fault) {
  int count = 0;
  *fault = assay::cuda::CudaDevice::Count(&count);
  return count;
}

__attribute__((visibility("default"))) assay::cuda::Device* AssayOpenCudaDevice(
    int index, assay::cuda::Fault* fault) {
  std::unique_ptr<assay::cuda::CudaDevice> device;
  *fault = assay::cuda::CudaDevice::Open(index, &device);
  return device.release();
}

}  // extern "C"
