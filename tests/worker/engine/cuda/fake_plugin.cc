// The fake as a plug-in, for tests of whole runs: ASSAY_CUDA_PLUGIN names it, ASSAY_FAKE_LATE which
// of its streams are late ("calls", "copies", "calls copies"), ASSAY_FAKE_GPUS how many there are
// (2) and ASSAY_FAKE_BROKEN_GPU which of them does not open. Ranks are processes. With
// ASSAY_FAKE_LACKS_NCCL they cannot join each other. ASSAY_FAKE_ENGINES: what the library
// proposes and what each is said to take, best first ("a=30;b=10"); with "_1" behind it, of GPU 1.

#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/worker/engine/cuda/host_device.h"
#include "tests/worker/engine/cuda/process_world.h"
#include "worker/engine/backends/cuda/device.h"

namespace assay::cuda {
namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int GpuCount() {
  const std::string count = Variable("ASSAY_FAKE_GPUS");
  return count.empty() ? 2 : std::atoi(count.c_str());
}

std::vector<HostEngine> EnginesIn(const std::string& text) {
  std::vector<HostEngine> engines;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ';');) {
    const size_t split = word.find('=');
    engines.push_back({word.substr(0, split), std::stod(word.substr(split + 1))});
  }
  return engines;
}

class ProcessDevice : public HostDevice {
 public:
  Fault MakeRanksId(std::string* id) override {
    if (!Variable("ASSAY_FAKE_LACKS_NCCL").empty())
      return {.kind = FaultKind::kAbsent, .text = "cannot load libnccl.so.2; install NCCL"};
    *id = MakeProcessWorldId();
    return {};
  }

  Fault JoinRanks(const JoinOptions& options) override {
    HostRanks::AddWorld(options.id, OpenProcessWorld(options.id));
    return HostDevice::JoinRanks(options);
  }
};

}  // namespace
}  // namespace assay::cuda

extern "C" {

int AssayCudaInterface() {
  return assay::cuda::kDeviceInterface;
}

int AssayCountCudaDevices(assay::cuda::Fault*) {
  return assay::cuda::GpuCount();
}

assay::cuda::Device* AssayOpenCudaDevice(int index, assay::cuda::Fault* fault) {
  if (assay::cuda::Variable("ASSAY_FAKE_BROKEN_GPU") == std::to_string(index)) {
    *fault = {.kind = assay::cuda::FaultKind::kAbsent, .text = "this GPU is broken"};
    return nullptr;
  }
  auto device = std::make_unique<assay::cuda::ProcessDevice>();
  const std::string late = assay::cuda::Variable("ASSAY_FAKE_LATE");
  device->set_late(late.find("calls") != std::string::npos,
                   late.find("copies") != std::string::npos);
  const std::string name =
      index == 0 ? "ASSAY_FAKE_ENGINES" : "ASSAY_FAKE_ENGINES_" + std::to_string(index);
  const std::string engines = assay::cuda::Variable(name.c_str());
  if (!engines.empty()) device->set_engines(assay::cuda::EnginesIn(engines));
  return device.release();
}

}  // extern "C"
