#include "worker/engine/thread_pinning.h"

#if __has_include(<omp.h>)

#include <omp.h>
#include <sched.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

cpu_set_t CoresOfThisThread() {
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  return set;
}

// The only cores of those of this process' threads that have but one.
std::multiset<size_t> CoresOfBoundThreads() {
  std::multiset<size_t> cores;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    cpu_set_t set;
    const int thread = std::stoi(task.path().filename().string());
    if (sched_getaffinity(thread, sizeof(set), &set) != 0 || CPU_COUNT(&set) != 1) continue;
    size_t core = 0;
    while (!CPU_ISSET(core, &set))
      ++core;
    cores.insert(core);
  }
  return cores;
}

// In a thread of its own, whose compute threads end with it and are no other test's.
void RunApart(int threads, void (*test)(int)) {
  std::thread([threads, test] {
    omp_set_num_threads(threads);
    test(threads);
  }).join();
}

TEST(ThreadPinningTest, EachComputeThreadButTheCallersHasACoreOfItsOwn) {
  unsetenv("OMP_PROC_BIND");
  const cpu_set_t all = CoresOfThisThread();
  RunApart(CPU_COUNT(&all), [](int threads) {
    const cpu_set_t before = CoresOfThisThread();

    EXPECT_EQ(PinComputeThreads(), threads - 1);

    const cpu_set_t after = CoresOfThisThread();
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
    const std::multiset<size_t> bound = CoresOfBoundThreads();
    EXPECT_EQ(bound.size(), static_cast<size_t>(threads - 1));
    for (const size_t core : bound)
      EXPECT_EQ(bound.count(core), 1U) << "core=" << core;
  });
}

TEST(ThreadPinningTest, SharedCoresAreLeftAlone) {
  unsetenv("OMP_PROC_BIND");
  const cpu_set_t all = CoresOfThisThread();
  RunApart(CPU_COUNT(&all) + 1, [](int) { EXPECT_EQ(PinComputeThreads(), 0); });
}

TEST(ThreadPinningTest, WhoeverBindsThreadsByTheEnvironmentHasTheSay) {
  setenv("OMP_PROC_BIND", "false", 1);
  const auto restore = absl::MakeCleanup([] { unsetenv("OMP_PROC_BIND"); });
  const cpu_set_t all = CoresOfThisThread();
  RunApart(CPU_COUNT(&all), [](int) { EXPECT_EQ(PinComputeThreads(), 0); });
}

}  // namespace
}  // namespace assay

#endif
