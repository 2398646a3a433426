// Whoever fills, holds or evicts may be killed at any moment.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/cache/cached_dataset.h"
#include "worker/cache/cache_link.h"
#include "worker/cache/node_cache.h"

namespace assay::cache {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;

constexpr int kKills = 200;
constexpr int64_t kQuota = int64_t{1} << 30;

NodeCache Cache(const TempDir& dir, int64_t quota_bytes = kQuota) {
  absl::StatusOr<NodeCache> cache =
      NodeCache::Open({.directory = dir.Path("cache"), .quota_bytes = quota_bytes});
  EXPECT_THAT(cache, IsOk());
  return *std::move(cache);
}

// A child that does `work` and ends with what that returns.
pid_t Fork(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  return child;
}

int ExitOf(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Every file that the journal calls finished is whole, or is seen not to be.
int LyingFiles(const TempDir& dir, const SmallDataset& dataset) {
  const std::string folder = JoinPath(dir.Path("cache"), dataset.digest());
  const absl::StatusOr<Journal> journal = LoadJournal(JoinPath(folder, "journal"));
  if (!journal.ok()) return 0;
  int count = 0;
  for (const dataset::ManifestFile& file : dataset.manifest().files) {
    const auto found = journal->files.find(file.path);
    if (found == journal->files.end()) continue;
    const std::string path = JoinPath(JoinPath(folder, "files"), file.path);
    const absl::StatusOr<JournalFile> now = LookAt(path);
    if (!now.ok() || now->mtime_ns != found->second.mtime_ns) continue;  // copied again
    if (Sha256Hex(ReadFile(path, 1 << 24).value_or("")) != file.sha256) ++count;
  }
  return count;
}

TEST(NodeCacheCrashTest, KilledAtAnyPointItNeverLiesAndGoesOn) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const SmallDataset dataset("a", 60, 40'000);
  const SmallDataset other("b", 60, 40'000);
  const RealClock clock;
  const TempDir dir;
  // How long it takes undisturbed: kills are spread over that, and over less where they come too
  // late, for a busy machine may be idle a moment later.
  const MonoTime begin = clock.Mono();
  ASSERT_THAT(Cache(dir).Stage(dataset.path(), &clock), IsOk());
  int64_t span_us = absl::ToInt64Microseconds(clock.Mono() - begin);
  int unfinished = 0;
  for (int i = 0; i < kKills; ++i) {
    // Room for one of them: each evicts the other.
    const SmallDataset& filled = i / 4 % 2 == 0 ? dataset : other;
    const pid_t child =
        Fork([&] { return Cache(dir, 3'000'000).Stage(filled.path(), &clock).ok() ? 0 : 1; });
    const auto delay = static_cast<int64_t>(random() % static_cast<uint64_t>(span_us + 1000));
    absl::SleepFor(absl::Microseconds(delay));
    kill(child, SIGKILL);
    if (ExitOf(child) != 0) {
      ++unfinished;
    } else {
      span_us -= span_us / 100;
    }
    ASSERT_EQ(LyingFiles(dir, dataset), 0) << "kill " << i;
    ASSERT_EQ(LyingFiles(dir, other), 0) << "kill " << i;
  }
  EXPECT_GT(unfinished, kKills / 10) << "the kills came too late to test anything";

  // Nothing is locked, and whatever is there serves.
  NodeCache cache = Cache(dir);
  ASSERT_THAT(cache.Stage(dataset.path(), &clock), IsOk());
  EXPECT_EQ(DifferentFiles(dataset, NodeCache::FilesPath(dir.Path("cache"), dataset.digest())), 0);
  const std::vector<CachedDataset> list = cache.List().value();
  for (const CachedDataset& entry : list)
    EXPECT_FALSE(entry.is_held);
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(dir.Path("cache"));
  ASSERT_THAT(names, IsOk());
  for (const std::string& name : *names)
    EXPECT_FALSE(name.starts_with(".evicted-")) << name;
}

TEST(NodeCacheCrashTest, ARunThatIsKilledHoldsNothingAnyMore) {
  const SmallDataset dataset("a", 3, 1000);
  const RealClock clock;
  const TempDir dir;
  NodeCache cache = Cache(dir);
  ASSERT_THAT(cache.Stage(dataset.path(), &clock), IsOk());
  int ready[2] = {};
  ASSERT_EQ(pipe(ready), 0);
  const pid_t run = Fork([&] {
    const absl::StatusOr<Lease> lease = Cache(dir).Hold(dataset.digest());
    if (write(ready[1], lease.ok() ? "y" : "n", 1) != 1) return 1;
    for (;;)
      pause();
  });
  char is_held = 'n';
  ASSERT_EQ(read(ready[0], &is_held, 1), 1);
  ASSERT_EQ(is_held, 'y');
  EXPECT_THAT(cache.Evict(dataset.digest()), StatusIs(absl::StatusCode::kAborted));

  kill(run, SIGKILL);
  ExitOf(run);

  EXPECT_THAT(cache.Evict(dataset.digest()), IsOk());
  close(ready[0]);
  close(ready[1]);
}

// Runs start while others make room: each has all of its dataset, or is told that it is not there.
TEST(NodeCacheCrashTest, RunsThatRaceWithEvictionHaveAllOrNothing) {
  const SmallDataset dataset("a", 20, 5'000);
  const SmallDataset other("b", 20, 5'000);
  const RealClock clock;
  const TempDir dir;
  const int64_t quota = 150'000;  // room for one
  ASSERT_THAT(Cache(dir, quota).Stage(dataset.path(), &clock), IsOk());
  std::vector<pid_t> children;
  children.push_back(Fork([&] {
    for (int i = 0; i < 20; ++i)
      Cache(dir, quota).Stage((i % 2 == 0 ? other : dataset).path(), &clock).status().IgnoreError();
    return 0;
  }));
  for (int run = 0; run < 2; ++run)
    children.push_back(Fork([&, run] {
      for (int i = 0; i < 20; ++i) {
        const std::string stage = dir.Path(absl::StrCat("stage_", run, "_", i));
        const absl::StatusOr<Lease> lease = Cache(dir, quota).Hold(dataset.digest());
        if (absl::IsNotFound(lease.status()) || absl::IsAborted(lease.status())) continue;
        if (!lease.ok()) return 1;
        const absl::StatusOr<Linked> linked =
            LinkDataset(*lease, {.target_dir = stage, .seed = 1}, clock);
        if (!linked.ok() || !linked->damaged.empty()) return 2;
        // What is linked stays, whoever evicts.
        if (linked->files + DifferentFiles(dataset, stage) !=
            static_cast<int64_t>(dataset.manifest().files.size()))
          return 3;
      }
      return 0;
    }));
  for (const pid_t child : children)
    EXPECT_EQ(ExitOf(child), 0);
}

}  // namespace
}  // namespace assay::cache
