// The threads of the hooks beside commits; the thread sanitizer watches.

#include "server/notify/notifier.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "server/store/store.h"
#include "tests/server/core/world.h"
#include "tests/support/await.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::notify {
namespace {

using ::assay::testing::Await;
using ::assay::testing::IsOk;
using ::testing::ElementsAre;

class NotifierTest : public ::testing::Test {
 protected:
  HookOptions Shell(const std::string& name, const std::string& script) {
    return {.name = name,
            .argv = {"/bin/sh", "-c", script, name, dir_.path()},
            .patterns = {"entry.submitted"},
            .timeout = absl::Minutes(2),
            .retry_for = absl::Hours(1)};
  }
  absl::StatusOr<std::unique_ptr<Notifier>> Start(std::vector<HookOptions> hooks) {
    return Notifier::Start({.data_directory = dir_.path(),
                            .database_path = dir_.Path("assay.db"),
                            .hooks = std::move(hooks)},
                           &clock_, &watchers_);
  }

  testing::TempDir dir_;
  RealClock clock_;
  runtime::Watchers watchers_;
  std::unique_ptr<store::Store> store_ = *store::Store::Open(dir_.Path("assay.db"));
  core::testing::World world_{[this](const core::Outcome& outcome, const core::State& state) {
    CHECK_OK(store_->Commit(outcome, state));
    if (!outcome.events.empty()) watchers_.Committed(outcome.events.back().seq, {});
  }};
};

TEST_F(NotifierTest, AHookThatHangsKeepsNoOtherAndNoCommit) {
  auto notifier =
      Start({Shell("hangs", "mkfifo $1/pipe; read x < $1/pipe"), Shell("tells", "cat >> $1/told")});
  ASSERT_THAT(notifier, IsOk());
  for (int i = 0; i < 3; ++i)
    world_.Submit();
  EXPECT_TRUE(Await([&] { return (*notifier)->figures()[1].delivered == 3; }));
  EXPECT_TRUE(Await([&] { return (*notifier)->figures()[0].lag_seconds > 0; }));
  EXPECT_EQ((*notifier)->figures()[0].delivered, 0);
  notifier->reset();  // does not wait for what hangs

  const std::string told = ReadFile(dir_.Path("told")).value_or("");
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 3);
  EXPECT_THAT(ListDirectory(dir_.Path("notify")),
              testing::IsOkAndHolds(ElementsAre("hangs.json", "tells.json")));
}

TEST_F(NotifierTest, AHookThatWasTakenOutBeginsAnew) {
  const HookOptions hook = Shell("tells", "cat >> $1/told");
  ASSERT_THAT(Start({hook}), IsOk());
  world_.Submit();
  ASSERT_THAT(ForgetOtherHooks(dir_.path(), {hook}), IsOk());
  ASSERT_THAT(ForgetOtherHooks(dir_.path(), {}), IsOk());
  EXPECT_THAT(ListDirectory(dir_.Path("notify")), testing::IsOkAndHolds(ElementsAre()));
  auto notifier = Start({hook});
  ASSERT_THAT(notifier, IsOk());
  world_.Submit();
  EXPECT_TRUE(Await([&] { return (*notifier)->figures()[0].delivered == 1; }));
  EXPECT_THAT(ReadFile(dir_.Path("told")), testing::IsOkAndHolds(::testing::HasSubstr("\"e-2\"")));
}

}  // namespace
}  // namespace assay::notify
