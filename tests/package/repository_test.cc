#include "common/package/repository.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"

namespace assay::package {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RepositoryTest : public ::testing::Test {
 protected:
  RepositoryTest() { CHECK_OK(MakeDirectories(dir_.Path("folder"))); }
  RepositoryReport Check() const {
    return CheckRepository(*TreeReader::Open(dir_.path()), dir_.path(), "ORG");
  }
  static std::vector<std::string> Lines(const RepositoryReport& report) {
    std::vector<std::string> lines;
    for (const PackageFinding& found : report.findings)
      lines.push_back(found.finding.rule_id + " " + found.path);
    return lines;
  }

  const testing::TempDir dir_;
};

TEST_F(RepositoryTest, OrdinaryFilesPass) {
  testing::WriteFile(dir_.Path("folder/a+b-1.0.txt"), "");
  ASSERT_EQ(symlink("a+b-1.0.txt", dir_.Path("folder/link").c_str()), 0);
  EXPECT_TRUE(Check().pass());
  EXPECT_EQ(Check().file_count, 2);
  EXPECT_THAT(Check().findings, IsEmpty());
}

TEST_F(RepositoryTest, NamesHaveNoBlanksAndNoDotInFront) {
  testing::WriteFile(dir_.Path("folder/.DS_Store"), "");
  testing::WriteFile(dir_.Path("folder/README (1).md"), "");
  CHECK_OK(MakeDirectories(dir_.Path(".github/x")));
  const RepositoryReport report = Check();
  EXPECT_FALSE(report.are_names_ok);
  EXPECT_TRUE(report.are_sizes_ok && report.are_links_ok);
  EXPECT_THAT(Lines(report),
              ElementsAre("R-REPO-001 ORG/.github", "R-REPO-001 ORG/folder/.DS_Store",
                          "R-REPO-001 ORG/folder/README (1).md"));
}

TEST_F(RepositoryTest, FilesHaveAtMost50MiB) {
  const std::string path = dir_.Path("folder/big");
  testing::WriteFile(path, "");
  ASSERT_EQ(truncate(path.c_str(), 50 * 1024 * 1024), 0);
  EXPECT_TRUE(Check().pass());
  ASSERT_EQ(truncate(path.c_str(), 50 * 1024 * 1024 + 1), 0);
  EXPECT_FALSE(Check().are_sizes_ok);
}

TEST_F(RepositoryTest, LinksLeadSomewhere) {
  ASSERT_EQ(symlink("nowhere", dir_.Path("folder/broken").c_str()), 0);
  ASSERT_EQ(symlink("/etc", dir_.Path("folder/out").c_str()), 0);
  const RepositoryReport report = Check();
  EXPECT_FALSE(report.are_links_ok);
  EXPECT_THAT(Lines(report),
              ElementsAre("R-REPO-003 ORG/folder/broken", "R-REPO-003 ORG/folder/out"));
}

}  // namespace
}  // namespace assay::package
