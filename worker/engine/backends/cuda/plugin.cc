#include "worker/engine/backends/cuda/plugin.h"

#include <dlfcn.h>

#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/file.h"
#include "common/status.h"
#include "worker/engine/backends/cuda/fault.h"

namespace assay::cuda {
namespace {

constexpr char kPlugin[] = "libassay_cuda.so";
constexpr char kOtherBackend[] = "or choose backend \"onednn\"";

std::string LoaderError() {
  const char* const text = dlerror();
  return text == nullptr ? "unknown error" : text;
}

template <typename Function>
Function* Find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

struct Plugin {
  CountFunction* count = nullptr;
  OpenFunction* open = nullptr;
};

absl::StatusOr<Plugin> Load(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return absl::UnavailableError(absl::StrCat(
        "cannot load ", path, ": ", LoaderError(),
        "; install CUDA's cuBLAS and cuDNN 9 or add their folders to LD_LIBRARY_PATH, ",
        kOtherBackend));
  const auto interface = Find<InterfaceFunction>(library, kInterfaceFunction);
  const Plugin plugin = {.count = Find<CountFunction>(library, kCountFunction),
                         .open = Find<OpenFunction>(library, kOpenFunction)};
  if (interface == nullptr || plugin.count == nullptr || plugin.open == nullptr ||
      interface() != kDeviceInterface)
    return absl::UnavailableError(absl::StrCat(
        path, " belongs to another build of Assay; install the two together, ", kOtherBackend));
  return plugin;
}

// The first that is there.
absl::StatusOr<Plugin> LoadFirst(const std::vector<std::string>& paths) {
  for (const std::string& path : paths)
    if (FileExists(path)) return Load(path);
  return absl::UnavailableError(
      absl::StrCat("there is no CUDA plug-in: none of ", absl::StrJoin(paths, ", "),
                   " exists; build Assay where nvcc and cuDNN 9 are installed, ", kOtherBackend));
}

}  // namespace

std::vector<std::string> PluginPaths() {
  if (const char* const path = std::getenv("ASSAY_CUDA_PLUGIN"); path != nullptr) return {path};
  const absl::StatusOr<std::string> folder = ProgramDirectory();
  if (!folder.ok()) return {};
  return {JoinPath(*folder, kPlugin), JoinPath(*folder, absl::StrCat("../lib/assay/", kPlugin)),
          JoinPath(*folder, absl::StrCat("../bin/", kPlugin))};
}

absl::StatusOr<int> CountDevices() {
  return CountDevices(PluginPaths());
}

absl::StatusOr<int> CountDevices(const std::vector<std::string>& paths) {
  ASSIGN_OR_RETURN(const Plugin plugin, LoadFirst(paths));
  Fault fault;
  const int count = plugin.count(&fault);
  if (count > 0) return count;
  if (fault.ok())
    fault = {.kind = FaultKind::kAbsent,
             .text = "there is none; check the driver and CUDA_VISIBLE_DEVICES"};
  return ToStatus("count the GPUs", fault);
}

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(int index) {
  return OpenDevice(index, PluginPaths());
}

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(int index,
                                                   const std::vector<std::string>& paths) {
  ASSIGN_OR_RETURN(const Plugin plugin, LoadFirst(paths));
  Fault fault;
  std::unique_ptr<Device> device(plugin.open(index, &fault));
  if (device != nullptr) return device;
  return ToStatus(absl::StrCat("GPU ", index), fault);
}

}  // namespace assay::cuda
