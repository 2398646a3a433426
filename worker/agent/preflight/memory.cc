#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/clock.h"
#include "common/log.h"
#include "worker/agent/preflight/check.h"

namespace assay::agent {
namespace {

constexpr double kScale = 3;

// Far above what a core's own caches hold, where the kernel does not tell the last level's size.
constexpr int64_t kUnknownCacheBytes = int64_t{64} << 20;

int64_t LastLevelCacheBytes() {
  for (const int name : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
    if (const int64_t bytes = sysconf(name); bytes > 0) return bytes;
  return kUnknownCacheBytes;
}

// One thread's share of the three arrays. Not initialised here: pages lie near the thread that
// touches them first.
struct Share {
  explicit Share(size_t n)
      : count(n),
        a(std::make_unique_for_overwrite<double[]>(n)),
        b(std::make_unique_for_overwrite<double[]>(n)),
        c(std::make_unique_for_overwrite<double[]>(n)) {}

  void Fill() {
    std::fill_n(a.get(), count, 0.0);
    std::fill_n(b.get(), count, 1.0);
    std::fill_n(c.get(), count, 2.0);
  }

  void Triad() {
    double* const to = a.get();
    const double* const left = b.get();
    const double* const right = c.get();
    for (size_t i = 0; i < count; ++i)
      to[i] = left[i] + kScale * right[i];
  }

  const size_t count;
  const std::unique_ptr<double[]> a, b, c;
};

struct Sweeps {
  int count = 0;
  absl::Duration time;
};

// All threads sweep together until `least` has passed; a last sweep is not cut.
Sweeps Sweep(int thread_count, size_t count_per_thread, absl::Duration least) {
  const RealClock clock;
  Sweeps sweeps;
  MonoTime begin;
  bool is_over = false;
  const auto after_each = [&]() noexcept {
    if (begin == MonoTime{}) {
      begin = clock.Mono();
      return;
    }
    ++sweeps.count;
    sweeps.time = clock.Mono() - begin;
    is_over = sweeps.time >= least;
  };
  std::barrier barrier(thread_count, after_each);
  const auto work = [&] {
    Share share(count_per_thread);
    share.Fill();
    barrier.arrive_and_wait();
    while (!is_over) {
      share.Triad();
      barrier.arrive_and_wait();
    }
    CHECK(share.a[share.count - 1] == 1 + kScale * 2);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < thread_count; ++i)
    threads.emplace_back(work);
  for (std::thread& thread : threads)
    thread.join();
  return sweeps;
}

}  // namespace

CheckResult CheckMemory(const CheckOptions& options) {
  constexpr int64_t kArrays = 3;
  const int64_t wanted =
      options.memory_bytes > 0 ? options.memory_bytes : 4 * LastLevelCacheBytes();
  // A node may have less to spare than its cache's size suggests.
  const int64_t available = static_cast<int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  const int64_t bytes = std::min(wanted, available / 2);
  const int threads = std::max(options.thread_count, 1);
  const auto count =
      static_cast<size_t>(bytes / kArrays / static_cast<int64_t>(sizeof(double)) / threads);
  if (count == 0) return NotMeasured("memory", "no memory is free");
  const Sweeps sweeps = Sweep(threads, count, absl::Seconds(1));
  const double moved = static_cast<double>(kArrays * static_cast<int64_t>(sizeof(double))) *
                       static_cast<double>(count) * threads * sweeps.count;
  return {.check = "memory",
          .is_measured = true,
          .value = moved / absl::ToDoubleSeconds(sweeps.time) / 1e9,
          .unit = "GB/s",
          .detail = absl::StrCat("triad over ", bytes >> 20, " MiB, ", threads, " threads, ",
                                 sweeps.count, " sweeps")};
}

}  // namespace assay::agent
