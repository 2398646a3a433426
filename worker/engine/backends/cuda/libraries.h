// Libraries that CUDA's own load when they first need them: what is missing shows in the middle of
// a run, or never, as a slower one.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_LIBRARIES_H_
#define WORKER_ENGINE_BACKENDS_CUDA_LIBRARIES_H_

#include <span>
#include <string>
#include <vector>

namespace assay::cuda {

struct LateLibrary {
  const char* name;
  const char* without;  // what happens then
  const char* remedy;
};

// Those of cuDNN 9, NVRTC and NCCL.
std::span<const LateLibrary> LateLibraries();

// A sentence for each of `libraries` that cannot be loaded, neither by the loader's search nor from
// the folders of cuDNN and cuBLAS, once the plug-in has loaded these. Others stay loaded.
std::vector<std::string> MissingLibraries(std::span<const LateLibrary> libraries);

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_LIBRARIES_H_
