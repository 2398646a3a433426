// What a kernel became: read out of nvdisasm's text and of what ptxas says of registers.

#ifndef TESTS_WORKER_ENGINE_CUDA_DEVICE_MACHINE_CODE_H_
#define TESTS_WORKER_ENGINE_CUDA_DEVICE_MACHINE_CODE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace assay::testing {

// Of one kernel. Its hot loop is the longest of those that have no other inside: of a kernel
// without loops of its own that over its elements. Unrolled, it does several passes at once.
struct KernelCode {
  int64_t instructions = 0;  // of the hot loop
  int64_t divisions = 0;     // of integers, in it
  int64_t calls = 0;         // of subroutines (64-bit divisions, roots), in it
  int64_t load_bits = 0;     // of the widest load from global memory in it, or 0
  int64_t spill_bytes = 0;   // and of any local memory
  int64_t registers = 0;
};

// By the names of operations as C++ has them: "Normalise<Bfloat16, 8>".
// `sass`: of `nvdisasm -c`; `ptxas`: what nvcc writes with -Xptxas -v.
std::map<std::string, KernelCode> ReadMachineCode(absl::string_view sass, absl::string_view ptxas);

}  // namespace assay::testing

#endif  // TESTS_WORKER_ENGINE_CUDA_DEVICE_MACHINE_CODE_H_
