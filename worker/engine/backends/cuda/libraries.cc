#include "worker/engine/backends/cuda/libraries.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/file.h"

namespace assay::cuda {
namespace {

constexpr char kCudnnRemedy[] = "install cuDNN 9 whole (pip install nvidia-cudnn-cu13)";

constexpr LateLibrary kLateLibraries[] = {
    {"libcudnn_heuristic.so.9", "no convolution can be planned", kCudnnRemedy},
    {"libcudnn_engines_precompiled.so.9", "convolutions run in slow loops", kCudnnRemedy},
    {"libcudnn_engines_runtime_compiled.so.9",
     "batch norm is a pass of its own in evaluation, and some convolutions run in slow loops",
     kCudnnRemedy},
    {"libnvrtc.so.13", "batch norm is a pass of its own in evaluation",
     "install NVRTC of CUDA 13 (pip install nvidia-cuda-nvrtc)"},
    {"libnccl.so.2", "the GPUs of several ranks average gradients through the hosts' memory",
     "install NCCL 2.18 or newer (pip install nvidia-nccl-cu13)"},
};

// Where the loaded libraries of NVIDIA lie.
int AddFolder(dl_phdr_info* info, size_t, void* folders) {
  const absl::string_view path = info->dlpi_name;
  if (absl::StrContains(path, "/libcudnn") || absl::StrContains(path, "/libcublas"))
    static_cast<std::vector<std::string>*>(folders)->emplace_back(path.substr(0, path.rfind('/')));
  return 0;
}

bool CanLoad(const std::string& path) {
  return dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr;
}

}  // namespace

std::span<const LateLibrary> LateLibraries() {
  return kLateLibraries;
}

std::vector<std::string> MissingLibraries(std::span<const LateLibrary> libraries) {
  std::vector<std::string> folders, missing;
  dl_iterate_phdr(AddFolder, &folders);
  for (const LateLibrary& library : libraries) {
    const bool is_there = CanLoad(library.name) ||
                          std::any_of(folders.begin(), folders.end(), [&](const auto& folder) {
                            return CanLoad(JoinPath(folder, library.name));
                          });
    if (!is_there)
      missing.push_back(
          absl::StrCat(library.name, " is missing: ", library.without, "; ", library.remedy));
  }
  return missing;
}

}  // namespace assay::cuda
