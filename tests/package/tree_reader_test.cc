#include "common/package/tree_reader.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"

namespace assay::package {
namespace {

using ::assay::testing::IsOkAndHolds;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using ::assay::testing::WriteFile;
using ::testing::HasSubstr;

class TreeReaderTest : public ::testing::Test {
 protected:
  TreeReaderTest() {
    CHECK_OK(MakeDirectories(dir_.Path("tree/below")));
    WriteFile(dir_.Path("tree/file"), "12345");
    WriteFile(dir_.Path("secret"), "not yours");
  }
  std::string Path(absl::string_view name) const { return dir_.Path("tree/" + std::string(name)); }
  void Link(const std::string& target, absl::string_view name) {
    ASSERT_EQ(symlink(target.c_str(), Path(name).c_str()), 0);
  }
  TreeReader Open() const { return *TreeReader::Open(dir_.Path("tree")); }

  const TempDir dir_;
};

TEST_F(TreeReaderTest, FollowsLinksThatStayInside) {
  Link("../file", "below/link");
  Link("below", "folder");

  EXPECT_EQ(Open().KindOf(Path("below/link")), PathKind::kFile);
  EXPECT_THAT(Open().Read(Path("below/link"), 100), IsOkAndHolds("12345"));
  EXPECT_TRUE(Open().IsDirectory(Path("folder")));
  EXPECT_FALSE(Open().IsRealDirectory(Path("folder")));
}

TEST_F(TreeReaderTest, RefusesLinksThatLeave) {
  Link("../secret", "relative");
  Link(dir_.Path("secret"), "absolute");
  Link("..", "parent");
  // Its name begins as the tree's does.
  WriteFile(dir_.Path("tree2"), "");
  Link("../tree2", "sibling");

  for (const char* name : {"relative", "absolute", "parent", "sibling"}) {
    EXPECT_EQ(Open().KindOf(Path(name)), PathKind::kOutsideLink) << name;
    EXPECT_THAT(Open().Read(Path(name), 100),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("leaves the tree")));
  }
}

TEST_F(TreeReaderTest, RefusesWhatIsNoFile) {
  Link("nowhere", "broken");
  Link("circle", "circle");
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);

  EXPECT_EQ(Open().KindOf(Path("broken")), PathKind::kBrokenLink);
  EXPECT_EQ(Open().KindOf(Path("circle")), PathKind::kBrokenLink);
  EXPECT_EQ(Open().KindOf(Path("pipe")), PathKind::kOther);
  EXPECT_EQ(Open().KindOf(Path("absent")), PathKind::kMissing);
  EXPECT_THAT(Open().Read(Path("pipe"), 100), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Open().Read(Path("below"), 100), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Open().Read(Path("absent"), 100), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(TreeReaderTest, RefusesFilesBeyondTheLimit) {
  EXPECT_THAT(Open().Read(Path("file"), 5), IsOkAndHolds("12345"));
  EXPECT_THAT(Open().Read(Path("file"), 4),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("more than the 4 bytes")));
}

TEST_F(TreeReaderTest, NeedsAFolder) {
  EXPECT_THAT(TreeReader::Open(Path("file")), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(TreeReader::Open(Path("absent")), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace assay::package
