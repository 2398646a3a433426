#include "worker/agent/workload/collected.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/log.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::agent {
namespace {

using ::testing::ElementsAre;
using testing::IsOk;
using testing::IsOkAndHolds;

class CollectedTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) const {
    CHECK_OK(MakeDirectories(std::filesystem::path(dir_.Path(name)).parent_path().string()));
    CHECK_OK(WriteFileAtomic(dir_.Path(name), text));
  }
  std::vector<std::string> Collect(const std::vector<std::string>& patterns) const {
    std::vector<std::string> names;
    for (const ArtifactFile& file : CollectOutput(dir_.Path("output"), patterns, 1))
      names.push_back(absl::StrCat(file.name, " ", ReadFile(file.path).value_or("")));
    return names;
  }
  const testing::TempDir dir_;
};

TEST_F(CollectedTest, TakesWhatAPatternNames) {
  for (const char* name :
       {"weights_0.npy", "weights_1.npy", "log.txt", "parts/a.bin", "parts/b/c.bin"})
    Write(absl::StrCat("output/", name), name);

  EXPECT_THAT(
      Collect({"weights_?.npy", "parts/*.bin"}),
      ElementsAre("output_1_parts_a.bin parts/a.bin", "output_1_weights_0.npy weights_0.npy",
                  "output_1_weights_1.npy weights_1.npy"));
  EXPECT_THAT(Collect({}), ElementsAre());
}

TEST_F(CollectedTest, FollowsNoLinksAndTakesNoMoreThanItMay) {
  Write("secret", "of the agent");
  for (size_t i = 0; i <= kCollectedCountMax; ++i)
    Write(absl::StrCat("output/f", 1000 + i), "");
  std::filesystem::create_symlink(dir_.Path("secret"), dir_.Path("output/a_link"));

  const std::vector<std::string> names = Collect({"*"});
  EXPECT_EQ(names.size(), kCollectedCountMax);
  EXPECT_EQ(names.front(), "output_1_f1000 ");
}

TEST_F(CollectedTest, CutsTheMiddleOutOfALongFileOnce) {
  Write("out", absl::StrCat(std::string(1000, 'a'), std::string(500, 'x'), std::string(1000, 'z')));
  Write("short", std::string(2000, 'a'));

  for (int i = 0; i < 2; ++i) {
    ASSERT_THAT(CutMiddle(dir_.Path("out"), 2000), IsOk());
    EXPECT_THAT(ReadFile(dir_.Path("out")),
                IsOkAndHolds(absl::StrCat(std::string(1000, 'a'), "\n[500 bytes left out]\n",
                                          std::string(1000, 'z'))));
  }
  ASSERT_THAT(CutMiddle(dir_.Path("short"), 2000), IsOk());
  EXPECT_THAT(ReadFile(dir_.Path("short")), IsOkAndHolds(std::string(2000, 'a')));
  EXPECT_THAT(CutMiddle(dir_.Path("absent"), 2000), IsOk());
}

}  // namespace
}  // namespace assay::agent
