// Reset, verify, arm, start ranks (requirement W1): each in its place, and what befalls a run
// between any two of them ends it with a reason, before a rank has run.

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/exit_code.h"
#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/agent/step_fixture.h"

namespace assay::agent {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsOk;

// In place of the kernel's file: a pipe that takes so many resets and holds the next one up.
class DropCachesPipe {
 public:
  DropCachesPipe(const std::string& path, int free_writes) {
    CHECK(mkfifo(path.c_str(), 0600) == 0);
    pipe_ = UniqueFd(open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    const auto page_bytes = static_cast<size_t>(getpagesize());
    CHECK(fcntl(pipe_.get(), F_SETPIPE_SZ, page_bytes) >= 0);
    const std::string filling(page_bytes - static_cast<size_t>(free_writes), 'x');
    CHECK_OK(WriteAll(pipe_.get(), filling));
    watch_ = UniqueFd(inotify_init1(IN_CLOEXEC));
    CHECK(inotify_add_watch(watch_.get(), path.c_str(), IN_OPEN | IN_CLOSE_WRITE) >= 0);
    left_ = free_writes + 1;
    setenv("STEP_DROP_CACHES", path.c_str(), 1);
  }
  ~DropCachesPipe() { unsetenv("STEP_DROP_CACHES"); }

  // Waits until one is held up.
  void Await() {
    alignas(inotify_event) std::array<char, 4096> events;
    while (left_ > 0) {
      pollfd entry{watch_.get(), POLLIN, 0};
      ASSERT_EQ(poll(&entry, 1, static_cast<int>(absl::ToInt64Milliseconds(kPatience))), 1);
      const ssize_t size = read(watch_.get(), events.data(), events.size());
      for (ssize_t at = 0; at < size;) {
        const auto* const event = reinterpret_cast<const inotify_event*>(events.data() + at);
        if ((event->mask & IN_OPEN) != 0) --left_;
        at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      }
    }
  }
  void LetGo() {
    std::array<char, 1 << 16> bytes;
    while (read(pipe_.get(), bytes.data(), bytes.size()) > 0) {
    }
  }

 private:
  UniqueFd pipe_, watch_;
  int left_ = 0;
};

class OrderTest : public StepFixture {
 protected:
  OrderTest() { run_.Trainer("touch " + run_.dir.Path("ran")); }

  // What the step says that it has done, of these, in the order of its log.
  std::vector<std::string> Done() const {
    std::vector<std::string> done;
    const std::string log = ReadFile(directory_.StepLogPath()).value_or("");
    for (const absl::string_view line : absl::StrSplit(log, '\n'))
      for (const char* const what :
           {"caches reset", "caches verified", "touch monitor armed", "ranks started"})
        if (absl::StartsWith(line, "time=") &&
            absl::StrContains(line, absl::StrCat(" ", what, " ")) &&
            (done.empty() || done.back() != what))
          done.emplace_back(what);
    return done;
  }
  bool HasRun() const { return FileExists(run_.dir.Path("ran")); }
};

TEST_F(OrderTest, TheStepsLogHasFourStampsInThisOrder) {
  EXPECT_EQ(Run().code, 0);

  EXPECT_THAT(Done(), ElementsAre("caches reset", "caches verified", "touch monitor armed",
                                  "ranks started"));
  EXPECT_TRUE(HasRun());
}

// The dataset goes while its caches are reset.
TEST_F(OrderTest, AFaultBetweenResetAndVerificationEndsTheRun) {
  DropCachesPipe pipe(run_.dir.Path("drop_caches"), 0);
  const ProcessId step = Start();
  pipe.Await();
  ASSERT_THAT(RemoveTree(run_.dir.Path("dataset")), IsOk());
  pipe.LetGo();

  const StepExit exit = Finish(step);

  EXPECT_EQ(exit.code, static_cast<int>(ExitCode::kBadData));
  EXPECT_THAT(exit.reason, HasSubstr(run_.dir.Path("dataset")));
  EXPECT_THAT(Done(), ElementsAre("caches reset"));
  EXPECT_FALSE(HasRun());
}

// What memory holds was counted, and looking has loaded inodes, which are dropped: meanwhile the
// samples go.
TEST_F(OrderTest, AFaultBetweenVerificationAndTheWitnessEndsTheRun) {
  DropCachesPipe pipe(run_.dir.Path("drop_caches"),
                      2);  // a pipe drops nothing, so it is tried twice
  const ProcessId step = Start();
  pipe.Await();
  ASSERT_THAT(RemoveTree(run_.dir.Path("dataset")), IsOk());
  pipe.LetGo();

  const StepExit exit = Finish(step);

  EXPECT_EQ(exit.code, static_cast<int>(ExitCode::kBadData));
  EXPECT_THAT(exit.reason, HasSubstr(run_.dir.Path("dataset")));
  EXPECT_THAT(Done(), ElementsAre("caches reset", "caches verified"));
  EXPECT_FALSE(HasRun());
}

// An instance of a throughput set, which waits for the others once it is armed.
TEST_F(OrderTest, AFaultBetweenTheWitnessAndTheRanksEndsTheRun) {
  run_.spec.set_is_start_awaited(true);
  ASSERT_THAT(PrepareRun(directory_, run_.spec, run_.worker, "{}"), IsOk());
  const UniqueFd watch(inotify_init1(IN_CLOEXEC));
  ASSERT_GE(inotify_add_watch(watch.get(), directory_.WitnessDirectory().c_str(), IN_MOVED_TO), 0);
  const absl::StatusOr<ProcessId> step = StartStepProcess(directory_, STEP_RUNNER);
  ASSERT_THAT(step, IsOk());
  std::array<char, 4096> events;
  while (!FileExists(directory_.ReadyPath()))
    ASSERT_GT(read(watch.get(), events.data(), events.size()), 0);
  ASSERT_EQ(unlink(run_.worker.trainer_program().c_str()), 0);
  ASSERT_THAT(WriteFileAtomic(directory_.LeavePath(), ""), IsOk());

  const StepExit exit = Finish(*step);

  EXPECT_NE(exit.code, 0);
  EXPECT_THAT(exit.reason, HasSubstr(run_.worker.trainer_program()));
  EXPECT_THAT(Done(), ElementsAre("caches reset", "caches verified", "touch monitor armed"));
  EXPECT_FALSE(HasRun());
}

}  // namespace
}  // namespace assay::agent
