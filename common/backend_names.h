// The compute backends that a submission may name, for those who do not have them.

#ifndef COMMON_BACKEND_NAMES_H_
#define COMMON_BACKEND_NAMES_H_

#include "absl/strings/string_view.h"

namespace assay {

// As the trainer's registry has them (worker/engine/backends/registry.cc, which checks it).
inline constexpr absl::string_view kBackendNames[] = {"cuda",   "cuda-tf32",   "cuda-bf16",
                                                      "onednn", "onednn-bf16", "reference"};

}  // namespace assay

#endif  // COMMON_BACKEND_NAMES_H_
