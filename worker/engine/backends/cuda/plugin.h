// Where the CUDA backend gets its device: the plug-in libassay_cuda.so, loaded when it is asked
// for.
//
// The programs link nothing of CUDA and so start on any machine. The plug-in lies beside the
// program, in ../lib/assay or in ../bin; ASSAY_CUDA_PLUGIN names another file.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_PLUGIN_H_
#define WORKER_ENGINE_BACKENDS_CUDA_PLUGIN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "worker/engine/backends/cuda/device.h"

namespace assay::cuda {

// Files that OpenDevice tries, in order.
std::vector<std::string> PluginPaths();

// GPUs of this process, at least one. Errors as OpenDevice. Loads the plug-in, but opens no GPU.
absl::StatusOr<int> CountDevices();

// GPU `index` of this process. The plug-in stays loaded for good.
// UNAVAILABLE: no plug-in, one that does not load or is of another build, no driver or no GPU; the
// message names the file, says why, and what to do about it.
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(int index);

// As above, with the files to try.
absl::StatusOr<int> CountDevices(const std::vector<std::string>& paths);
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(int index,
                                                   const std::vector<std::string>& paths);

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_PLUGIN_H_
