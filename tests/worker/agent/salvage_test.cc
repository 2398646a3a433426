#include "worker/agent/salvage.h"

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::agent {
namespace {

using testing::IsOk;
using testing::IsOkAndHolds;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class SalvageTest : public ::testing::Test {
 protected:
  SalvageTest() : run_(*RunDirectory::ForRun(data_, {"runs/r-1", 1})) {
    Write("exit.json", "{}");
    Write("ranks/model.bin", large_);
    Write("ranks/scratch.bin", "x");
  }
  void Write(const std::string& name, const std::string& text) const {
    const std::string path = run_.Path(name);
    CHECK_OK(MakeDirectories(std::filesystem::path(path).parent_path().string()));
    CHECK_OK(WriteFileAtomic(path, text));
  }
  std::string Copy(const std::string& name) const {
    const std::string of_run = std::filesystem::path(run_.path()).filename().string();
    return JoinPath(salvage_, JoinPath("runs", JoinPath(of_run, name)));
  }

  const testing::TempDir dir_;
  const std::string data_ = dir_.Path("data");
  const std::string salvage_ = dir_.Path("salvage");
  const std::string large_ = std::string((3 << 20) + 1, 'm');
  const RunDirectory run_;
};

TEST_F(SalvageTest, CopiesTheRunAndOfItsRanksTheArtifactsAlone) {
  ASSERT_THAT(SalvageRun(run_, {run_.Path("ranks/model.bin")}, salvage_), IsOk());

  EXPECT_THAT(ReadFile(Copy("exit.json")), IsOkAndHolds("{}"));
  EXPECT_THAT(ReadFile(Copy("ranks/model.bin")), IsOkAndHolds(large_));
  EXPECT_FALSE(FileExists(Copy("ranks/scratch.bin")));
  EXPECT_THAT(
      ListDirectory(JoinPath(salvage_, "runs")),
      IsOkAndHolds(UnorderedElementsAre(std::filesystem::path(run_.path()).filename().string())));
}

TEST_F(SalvageTest, ReplacesAnOlderCopy) {
  ASSERT_THAT(SalvageRun(run_, {}, salvage_), IsOk());
  Write("exit.json", "{\"code\": 1}");

  ASSERT_THAT(SalvageRun(run_, {}, salvage_), IsOk());

  EXPECT_THAT(ReadFile(Copy("exit.json")), IsOkAndHolds("{\"code\": 1}"));
}

TEST_F(SalvageTest, FollowsNoLinks) {
  const std::string secret = dir_.Path("secret");
  CHECK_OK(WriteFileAtomic(secret, "of somebody else"));
  std::filesystem::create_symlink(secret, run_.Path("link"));
  std::filesystem::create_symlink(secret, run_.Path("ranks/link"));

  ASSERT_THAT(SalvageRun(run_, {}, salvage_), IsOk());
  EXPECT_FALSE(FileExists(Copy("link")));

  // Whoever trained could have put the link where an artifact was.
  EXPECT_THAT(SalvageRun(run_, {run_.Path("ranks/link")}, salvage_), Not(IsOk()));
}

TEST_F(SalvageTest, SaysWhetherARunWouldBeLost) {
  EXPECT_TRUE(IsAllSalvaged(dir_.Path("nothing"), salvage_)) << "there was no run";
  EXPECT_FALSE(IsAllSalvaged(data_, salvage_));

  ASSERT_THAT(SalvageRun(run_, {}, salvage_), IsOk());
  EXPECT_TRUE(IsAllSalvaged(data_, salvage_));

  const RunDirectory second = *RunDirectory::ForRun(data_, {"runs/r-2", 1});
  CHECK_OK(MakeDirectories(second.path()));
  EXPECT_FALSE(IsAllSalvaged(data_, salvage_)) << "r-2 has no copy";
}

}  // namespace
}  // namespace assay::agent
