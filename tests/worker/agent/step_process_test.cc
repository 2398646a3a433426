#include "worker/agent/step_process.h"

#include <signal.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/process.h"
#include "tests/support/status_matchers.h"

namespace assay::agent {
namespace {

using testing::IsOk;

// A step that is still clearing caches has not come to look at its signals.
TEST(HasPendingStopTest, SeesASignalThatNobodyHasTakenNoteOf) {
  sigset_t stop;
  sigset_t before;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &stop, &before), 0);
  const absl::StatusOr<ProcessId> self = IdentifyProcess(getpid());
  ASSERT_THAT(self, IsOk());
  EXPECT_FALSE(HasPendingStop(*self));
  ASSERT_EQ(pthread_kill(pthread_self(), SIGTERM), 0);
  EXPECT_TRUE(HasPendingStop(*self));
  int taken = 0;
  ASSERT_EQ(sigwait(&stop, &taken), 0);
  EXPECT_FALSE(HasPendingStop(*self));
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
}

}  // namespace
}  // namespace assay::agent
