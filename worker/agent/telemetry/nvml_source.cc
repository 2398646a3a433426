// NVIDIA's GPUs, by the library of the driver (libnvidia-ml.so.1), which is loaded where it exists.
// A driver may hang, so it is asked in a thread of its own, whose answer nobody waits for longer
// than for a moment.

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "worker/agent/telemetry/asking_thread.h"
#include "worker/agent/telemetry/source.h"

namespace assay::agent {
namespace {

constexpr unsigned kGpusMax = 64;
constexpr std::chrono::milliseconds kPatience(50);  // with one sample
constexpr std::chrono::milliseconds kStartPatience(5000);

// As nvml.h has them; every function returns 0 if it has done what it says.
using Device = void*;
struct GpuUtilization {
  unsigned gpu, memory;  // percent
};
struct GpuMemory {
  unsigned long long total, free, used;  // bytes
};
constexpr int kSmClock = 1;
constexpr int kMemoryClock = 2;

// The functions of the library; null: it lacks one.
struct Nvml {
  int (*init)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, Device*) = nullptr;
  int (*utilization)(Device, GpuUtilization*) = nullptr;
  int (*memory)(Device, GpuMemory*) = nullptr;
  int (*power_mw)(Device, unsigned*) = nullptr;
  int (*energy_mj)(Device, unsigned long long*) = nullptr;
  int (*clock_mhz)(Device, int, unsigned*) = nullptr;
  int (*throttle)(Device, unsigned long long*) = nullptr;
  int (*temperature_c)(Device, int, unsigned*) = nullptr;

  // False without the library, or without what finds devices.
  bool Load(const std::string& path) {
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return false;
    Find(library, "nvmlInit_v2", &init);
    Find(library, "nvmlDeviceGetCount_v2", &count);
    Find(library, "nvmlDeviceGetHandleByIndex_v2", &handle);
    Find(library, "nvmlDeviceGetUtilizationRates", &utilization);
    Find(library, "nvmlDeviceGetMemoryInfo", &memory);
    Find(library, "nvmlDeviceGetPowerUsage", &power_mw);
    Find(library, "nvmlDeviceGetTotalEnergyConsumption", &energy_mj);
    Find(library, "nvmlDeviceGetClockInfo", &clock_mhz);
    Find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &throttle);
    Find(library, "nvmlDeviceGetTemperature", &temperature_c);
    return init != nullptr && count != nullptr && handle != nullptr;
  }

 private:
  template <class Function>
  static void Find(void* library, const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(library, name));
  }
};

// In the order of the columns of one GPU.
constexpr size_t kGpuValues = 9;
using GpuValues = std::array<int64_t, kGpuValues>;

std::vector<telemetry::Column> ColumnsOfGpu(size_t gpu) {
  const std::string own = absl::StrCat("gpu.", gpu, ".");
  return {{own + "utilization", "%", false},
          {own + "memory_utilization", "%", false},
          {own + "memory", "bytes", false},
          {absl::StrCat("power.gpu.", gpu), "mW", false},
          {absl::StrCat("energy.gpu.", gpu), "uJ", true},
          {own + "clock", "MHz", false},
          {own + "memory_clock", "MHz", false},
          {own + "throttle_reasons", "bits", false},
          {own + "temperature", "C", false}};
}

template <class Number, class Function, class... Arguments>
int64_t AskGpu(Function function, int64_t scale, Device device, Arguments... arguments) {
  Number number{};
  if (function == nullptr || function(device, arguments..., &number) != 0)
    return telemetry::kMissing;
  return static_cast<int64_t>(number) * scale;
}

GpuValues ReadGpu(const Nvml& nvml, Device device) {
  GpuValues values;
  values.fill(telemetry::kMissing);
  GpuUtilization utilization{};
  if (nvml.utilization != nullptr && nvml.utilization(device, &utilization) == 0) {
    values[0] = utilization.gpu;
    values[1] = utilization.memory;
  }
  GpuMemory memory{};
  if (nvml.memory != nullptr && nvml.memory(device, &memory) == 0)
    values[2] = static_cast<int64_t>(memory.used);
  values[3] = AskGpu<unsigned>(nvml.power_mw, 1, device);
  values[4] = AskGpu<unsigned long long>(nvml.energy_mj, 1000, device);
  values[5] = AskGpu<unsigned>(nvml.clock_mhz, 1, device, kSmClock);
  values[6] = AskGpu<unsigned>(nvml.clock_mhz, 1, device, kMemoryClock);
  values[7] = AskGpu<unsigned long long>(nvml.throttle, 1, device);
  values[8] = AskGpu<unsigned>(nvml.temperature_c, 1, device, 0);
  return values;
}

// Reads all of them.
std::function<std::vector<GpuValues>()> ReaderOfGpus(const std::string& path) {
  Nvml nvml;
  unsigned count = 0;
  std::vector<Device> devices;
  if (nvml.Load(path) && nvml.init() == 0 && nvml.count(&count) == 0) {
    for (unsigned i = 0; i < std::min(count, kGpusMax); ++i)
      if (Device device = nullptr; nvml.handle(i, &device) == 0) devices.push_back(device);
  }
  return [nvml, devices] {
    std::vector<GpuValues> values;
    for (Device device : devices)
      values.push_back(ReadGpu(nvml, device));
    return values;
  };
}

class NvmlSource final : public TelemetrySource {
 public:
  explicit NvmlSource(const SourceOptions& options) {
    if (options.nvml_library.empty()) return;
    gpus_.emplace([path = options.nvml_library] { return ReaderOfGpus(path); },
                  std::chrono::milliseconds(0));
    const size_t count =
        gpus_->AskAndWait(kStartPatience).value_or(std::vector<GpuValues>()).size();
    for (size_t gpu = 0; gpu < count; ++gpu)
      for (telemetry::Column& column : ColumnsOfGpu(gpu))
        columns_.push_back(std::move(column));
  }

  const std::vector<telemetry::Column>& columns() const override { return columns_; }

  void Sample(std::span<int64_t> values) override {
    if (!gpus_.has_value()) return;
    size_t at = 0;
    for (const GpuValues& gpu : gpus_->AskAndWait(kPatience).value_or(std::vector<GpuValues>()))
      for (const int64_t value : gpu)
        if (at < values.size()) values[at++] = value;
  }

 private:
  std::optional<AskingThread<std::vector<GpuValues>>> gpus_;
  std::vector<telemetry::Column> columns_;
};

}  // namespace

std::unique_ptr<TelemetrySource> MakeNvmlSource(const SourceOptions& options) {
  return std::make_unique<NvmlSource>(options);
}

}  // namespace assay::agent
