// NVIDIA's GPUs, by the library of the driver (libnvidia-ml.so.1), which is loaded where it exists.
// A driver may hang, so it is asked in a thread of its own, whose answer nobody waits for longer
// than for a moment; of a thread that hangs nothing is freed.

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"

#include "common/mutex.h"
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

// What the thread and those who ask it share.
struct GpuDesk {
  Mutex mutex;
  CondVar changed;
  int64_t asked ABSL_GUARDED_BY(mutex) = 1;  // the first reading tells how many GPUs there are
  int64_t answered ABSL_GUARDED_BY(mutex) = 0;
  bool is_over ABSL_GUARDED_BY(mutex) = false;
  std::vector<GpuValues> readings ABSL_GUARDED_BY(mutex);

  // The next question; nullopt: there is none any more.
  std::optional<int64_t> Next(int64_t last) {
    MutexLock lock(&mutex);
    while (asked == last && !is_over)
      changed.Wait(&mutex);
    if (is_over) return std::nullopt;
    return asked;
  }
  void Answer(int64_t question, std::vector<GpuValues> values) {
    MutexLock lock(&mutex);
    readings = std::move(values);
    answered = question;
    changed.NotifyAll();
  }
  // The newest readings; empty if they do not come.
  std::vector<GpuValues> Wait(int64_t question, std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    MutexLock lock(&mutex);
    while (answered < question) {
      const auto left = deadline - std::chrono::steady_clock::now();
      if (left <= left.zero() || !changed.WaitFor(&mutex, left)) break;
    }
    return answered >= question ? readings : std::vector<GpuValues>();
  }
};

void AnswerForGpus(const std::shared_ptr<GpuDesk>& desk, const std::string& path) {
  Nvml nvml;
  unsigned count = 0;
  std::vector<Device> devices;
  if (nvml.Load(path) && nvml.init() == 0 && nvml.count(&count) == 0) {
    for (unsigned i = 0; i < std::min(count, kGpusMax); ++i)
      if (Device device = nullptr; nvml.handle(i, &device) == 0) devices.push_back(device);
  }
  for (int64_t question = 0;;) {
    const std::optional<int64_t> next = desk->Next(question);
    if (!next.has_value()) return;
    question = *next;
    std::vector<GpuValues> values;
    for (Device device : devices)
      values.push_back(ReadGpu(nvml, device));
    desk->Answer(question, std::move(values));
    if (devices.empty()) return;
  }
}

class NvmlSource final : public TelemetrySource {
 public:
  explicit NvmlSource(const SourceOptions& options) {
    if (options.nvml_library.empty()) return;
    std::thread(AnswerForGpus, desk_, options.nvml_library).detach();
    const std::vector<GpuValues> first = desk_->Wait(1, kStartPatience);
    for (size_t gpu = 0; gpu < first.size(); ++gpu)
      for (telemetry::Column& column : ColumnsOfGpu(gpu))
        columns_.push_back(std::move(column));
  }
  ~NvmlSource() override {
    MutexLock lock(&desk_->mutex);
    desk_->is_over = true;
    desk_->changed.NotifyAll();
  }

  const std::vector<telemetry::Column>& columns() const override { return columns_; }

  void Sample(std::span<int64_t> values) override {
    const std::optional<int64_t> question = TakeTurn();
    if (!question.has_value()) return;  // it has not answered what it was asked before
    size_t at = 0;
    for (const GpuValues& gpu : desk_->Wait(*question, kPatience))
      for (const int64_t value : gpu)
        if (at < values.size()) values[at++] = value;
  }

 private:
  std::optional<int64_t> TakeTurn() {
    MutexLock lock(&desk_->mutex);
    if (desk_->answered < desk_->asked) return std::nullopt;
    desk_->changed.NotifyAll();
    return ++desk_->asked;
  }

  const std::shared_ptr<GpuDesk> desk_ = std::make_shared<GpuDesk>();
  std::vector<telemetry::Column> columns_;
};

}  // namespace

std::unique_ptr<TelemetrySource> MakeNvmlSource(const SourceOptions& options) {
  return std::make_unique<NvmlSource>(options);
}

}  // namespace assay::agent
