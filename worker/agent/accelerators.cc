#include "worker/agent/accelerators.h"

#include <dlfcn.h>

#include <array>
#include <memory>
#include <optional>

namespace assay::agent {
namespace {

// The part of NVML's C interface that is used here, as its reference manual gives it. The library
// is loaded at run time: nodes without it are the common case.
using NvmlDevice = void*;
struct NvmlMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
constexpr int kNvmlSuccess = 0;
constexpr int kNvmlClockSm = 1;    // NVML_CLOCK_SM
constexpr size_t kNameBytes = 96;  // NVML_DEVICE_NAME_V2_BUFFER_SIZE
constexpr unsigned kDeviceCountMax = 1024;

struct CloseLibrary {
  void operator()(void* handle) const { dlclose(handle); }
};

struct Nvml {
  std::unique_ptr<void, CloseLibrary> handle;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*device_count)(unsigned*) = nullptr;
  int (*device_by_index)(unsigned, NvmlDevice*) = nullptr;
  int (*name)(NvmlDevice, char*, unsigned) = nullptr;
  int (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  int (*clock_max)(NvmlDevice, int, unsigned*) = nullptr;
  int (*pcie_generation_max)(NvmlDevice, unsigned*) = nullptr;
  int (*pcie_lanes_max)(NvmlDevice, unsigned*) = nullptr;
};

template <typename Function>
bool Resolve(void* library, const char* symbol, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, symbol));
  return *function != nullptr;
}

std::optional<Nvml> LoadNvml() {
  Nvml nvml;
  nvml.handle.reset(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL));
  void* const library = nvml.handle.get();
  if (library == nullptr) return std::nullopt;
  const bool is_whole =
      Resolve(library, "nvmlInit_v2", &nvml.init) &&
      Resolve(library, "nvmlShutdown", &nvml.shutdown) &&
      Resolve(library, "nvmlDeviceGetCount_v2", &nvml.device_count) &&
      Resolve(library, "nvmlDeviceGetHandleByIndex_v2", &nvml.device_by_index) &&
      Resolve(library, "nvmlDeviceGetName", &nvml.name) &&
      Resolve(library, "nvmlDeviceGetMemoryInfo", &nvml.memory) &&
      Resolve(library, "nvmlDeviceGetMaxClockInfo", &nvml.clock_max) &&
      Resolve(library, "nvmlDeviceGetMaxPcieLinkGeneration", &nvml.pcie_generation_max) &&
      Resolve(library, "nvmlDeviceGetMaxPcieLinkWidth", &nvml.pcie_lanes_max);
  if (!is_whole || nvml.init() != kNvmlSuccess) return std::nullopt;
  return nvml;
}

Accelerator Describe(const Nvml& nvml, NvmlDevice device) {
  Accelerator accelerator;
  std::array<char, kNameBytes> name{};
  if (nvml.name(device, name.data(), name.size()) == kNvmlSuccess) accelerator.model = name.data();
  NvmlMemory memory{};
  if (nvml.memory(device, &memory) == kNvmlSuccess)
    accelerator.memory_bytes = static_cast<int64_t>(memory.total);
  unsigned value = 0;
  if (nvml.clock_max(device, kNvmlClockSm, &value) == kNvmlSuccess)
    accelerator.clock_mhz = static_cast<int>(value);
  if (nvml.pcie_generation_max(device, &value) == kNvmlSuccess)
    accelerator.pcie_generation = static_cast<int>(value);
  if (nvml.pcie_lanes_max(device, &value) == kNvmlSuccess)
    accelerator.pcie_lanes = static_cast<int>(value);
  return accelerator;
}

}  // namespace

std::vector<Accelerator> FindAccelerators() {
  std::vector<Accelerator> accelerators;
  const std::optional<Nvml> nvml = LoadNvml();
  if (!nvml.has_value()) return accelerators;
  unsigned count = 0;
  if (nvml->device_count(&count) != kNvmlSuccess || count > kDeviceCountMax) count = 0;
  for (unsigned i = 0; i < count; ++i) {
    NvmlDevice device = nullptr;
    if (nvml->device_by_index(i, &device) == kNvmlSuccess)
      accelerators.push_back(Describe(*nvml, device));
  }
  nvml->shutdown();
  return accelerators;
}

}  // namespace assay::agent
