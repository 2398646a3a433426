// How many threads a kernel starts with.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_GEOMETRY_H_
#define WORKER_ENGINE_BACKENDS_CUDA_GEOMETRY_H_

#include <algorithm>
#include <cstdint>

namespace assay::cuda {

inline constexpr uint32_t kThreadsPerBlock = 256;
inline constexpr int64_t kBlocksPerMultiprocessor = 8;  // 2,048 threads: what one holds at a time

struct Launch {
  uint32_t blocks, threads;
};

// For a kernel of `count` elements: a thread for each, or as many as the device holds at a time,
// which then take elements in strides of all threads.
constexpr Launch LaunchFor(int64_t count, int multiprocessors,
                           uint32_t threads = kThreadsPerBlock) {
  const int64_t blocks = (count + threads - 1) / threads;
  const int64_t most = kBlocksPerMultiprocessor * multiprocessors * kThreadsPerBlock / threads;
  return {static_cast<uint32_t>(std::clamp<int64_t>(blocks, 1, most)), threads};
}

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_GEOMETRY_H_
