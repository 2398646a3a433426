#include "worker/agent/account.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::agent {
namespace {

using ::testing::ElementsAre;
using testing::IsOk;
using testing::StatusIs;
using testing::TempDir;

int ModeOf(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
  return static_cast<int>(info.st_mode & 07777);
}

v1::WorkerConfig Config(const std::string& run_user) {
  v1::WorkerConfig config;
  config.set_run_user(run_user);
  return config;
}

TEST(AccountTest, IsNeverRootUnlessThatIsSaid) {
  EXPECT_EQ(*FindRunUser(Config("root")), std::nullopt);
  if (geteuid() != 0) {
    EXPECT_EQ(*FindRunUser(Config("")), std::nullopt) << "only root can choose";
    GTEST_SKIP() << "the rest needs root";
  }
  const auto user = FindRunUser(Config(""));
  ASSERT_THAT(user, IsOk());
  ASSERT_TRUE(user->has_value());
  EXPECT_NE((*user)->uid, 0u);
  EXPECT_NE((*user)->gid, 0u);
  EXPECT_THAT(FindRunUser(Config("no-such-account")), StatusIs(absl::StatusCode::kNotFound));
}

TEST(AccountTest, AStepSharesNoAccountWithItsRanks) {
  v1::WorkerConfig config = Config("root");
  EXPECT_EQ(*FindStepUser(config, std::nullopt), std::nullopt) << "as its ranks";
  const Account ranks{"nobody", 65534, 65534};
  const auto user = FindStepUser(config, ranks);
  ASSERT_THAT(user, IsOk());
  ASSERT_TRUE(user->has_value());
  EXPECT_NE((*user)->uid, 0u);
  config.set_step_user("root");
  EXPECT_EQ(*FindStepUser(config, ranks), std::nullopt);
  config.set_step_user("no-such-account");
  EXPECT_THAT(FindStepUser(config, ranks), StatusIs(absl::StatusCode::kNotFound));
  config.set_step_user("nobody");
  EXPECT_THAT(FindStepUser(config, ranks), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(AccountTest, ARankIsStartedThroughItsAccount) {
  EXPECT_THAT(AsRank(Account{"x", 7, 8}, {"/bin/true", "a"}),
              ElementsAre("/proc/self/exe", "rank", "7:8", "/bin/true", "a"));
  EXPECT_THAT(AsRank(std::nullopt, {"/bin/true"}),
              ElementsAre("/proc/self/exe", "rank", "-", "/bin/true"));
}

// What an earlier version, a wide umask or a restored copy left open.
TEST(AccountTest, TheDataDirectoryIsClosedAtStart) {
  const TempDir dir;
  v1::WorkerConfig config = Config("root");
  config.set_data_directory(dir.Path("data"));
  const std::string run = dir.Path("data/runs/r-1-g1");
  for (const std::string& path : {dir.Path("data/identity"), run + "/agent"}) {
    ASSERT_THAT(MakeDirectories(path), IsOk());
    ASSERT_EQ(chmod(path.c_str(), 0755), 0);
  }
  const std::string key = dir.Path("data/identity/worker.key");
  const std::string spool = run + "/agent/spool";
  for (const std::string& path : {key, spool, run + "/spec.textproto"}) {
    ASSERT_THAT(WriteFileAtomic(path, "secret"), IsOk());
    ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  }

  ASSERT_THAT(CloseDataDirectory(config, std::nullopt), IsOk());

  for (const std::string& path : {key, spool, run + "/spec.textproto"})
    EXPECT_EQ(ModeOf(path), 0600) << path;
  for (const std::string& path :
       {dir.Path("data"), dir.Path("data/runs"), dir.Path("data/identity"), dir.Path("data/stage"),
        run, run + "/agent"})
    EXPECT_EQ(ModeOf(path), 0700) << path;
}

TEST(AccountTest, RanksOfAnotherAccountPassWithoutLooking) {
  if (geteuid() != 0) GTEST_SKIP() << "this needs root";
  const TempDir dir;
  v1::WorkerConfig config = Config("nobody");
  config.set_data_directory(dir.Path("data"));
  ASSERT_THAT(MakeDirectories(dir.Path("data/runs/r-1-g1")), IsOk());
  const auto user = FindRunUser(config);
  ASSERT_THAT(user, IsOk());

  ASSERT_THAT(CloseDataDirectory(config, *user), IsOk());

  for (const char* name : {"data", "data/runs", "data/stage", "data/runs/r-1-g1"}) {
    struct stat info = {};
    ASSERT_EQ(stat(dir.Path(name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0710u) << name;
    EXPECT_EQ(info.st_uid, 0u) << name;
    EXPECT_EQ(info.st_gid, (*user)->gid) << name;
  }
}

}  // namespace
}  // namespace assay::agent
