// The measuring loop that our all-reduce and Open MPI's run alike.

#ifndef TESTS_BENCH_ALLREDUCE_LOOP_H_
#define TESTS_BENCH_ALLREDUCE_LOOP_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <vector>

namespace assay::bench {

// The sizes that are measured, in bytes of float32. 35,630,224 are the gradients of CosmoFlow
// (8,907,556 parameters).
inline constexpr size_t kAllReduceBytes[] = {4,       1024,     16 * 1024,  256 * 1024, 1 << 20,
                                             4 << 20, 16 << 20, 35'630'224, 64 << 20};

// What each side must offer: an all-reduce of `values` in place, and a barrier.
struct AllReduceSide {
  bool prints = false;  // one rank only
  std::function<void(float*, size_t)> all_reduce;
  std::function<void()> barrier;
};

// Prints one line "<bytes> <median seconds>" per size.
inline void MeasureAllReduce(const AllReduceSide& side) {
  using SteadyClock = std::chrono::steady_clock;
  for (const size_t bytes : kAllReduceBytes) {
    std::vector<float> values(bytes / sizeof(float), 1.0F);
    // About 256 MiB or 2,000 rounds per size; short messages are timed in batches, because reading
    // the clock costs as much as they do.
    const size_t round_count = std::clamp<size_t>((size_t{256} << 20) / bytes, 7, 2000);
    const size_t batch = bytes <= 16 * 1024 ? 20 : 1;
    for (size_t i = 0; i < 3; ++i)
      side.all_reduce(values.data(), values.size());
    std::vector<double> seconds;
    for (size_t done = 0; done < round_count; done += batch) {
      std::fill(values.begin(), values.end(), 1.0F);
      side.barrier();
      const SteadyClock::time_point start = SteadyClock::now();
      for (size_t i = 0; i < batch; ++i)
        side.all_reduce(values.data(), values.size());
      const std::chrono::duration<double> elapsed = SteadyClock::now() - start;
      seconds.push_back(elapsed.count() / static_cast<double>(batch));
    }
    std::nth_element(seconds.begin(),
                     seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2),
                     seconds.end());
    if (side.prints) std::printf("%zu %.9f\n", bytes, seconds[seconds.size() / 2]);
  }
  std::fflush(stdout);
}

}  // namespace assay::bench

#endif  // TESTS_BENCH_ALLREDUCE_LOOP_H_
