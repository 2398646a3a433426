// The fake as a plug-in, for tests of whole runs: ASSAY_CUDA_PLUGIN names it, ASSAY_FAKE_LATE which
// of its streams are late ("calls", "copies", "calls copies").

#include <cstdlib>
#include <memory>
#include <string>

#include "tests/worker/engine/cuda/host_device.h"
#include "worker/engine/backends/cuda/device.h"

extern "C" {

int AssayCudaInterface() {
  return assay::cuda::kDeviceInterface;
}

assay::cuda::Device* AssayOpenCudaDevice(int, assay::cuda::Fault*) {
  auto device = std::make_unique<assay::cuda::HostDevice>();
  const char* const named = std::getenv("ASSAY_FAKE_LATE");
  const std::string late = named == nullptr ? "" : named;
  device->set_late(late.find("calls") != std::string::npos,
                   late.find("copies") != std::string::npos);
  return device.release();
}

}  // extern "C"
