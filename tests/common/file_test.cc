#include "common/file.h"

#include <sys/stat.h>

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/sha256.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::IsOkAndHolds;
using testing::StatusIs;
using testing::TempDir;

TEST(FileTest, AtomicWriteReplacesTheContentAndLeavesNothingElse) {
  const TempDir dir;
  const std::string path = dir.Path("a");

  ASSERT_THAT(WriteFileAtomic(path, "old"), IsOk());
  ASSERT_THAT(WriteFileAtomic(path, "new", 0600), IsOk());

  EXPECT_THAT(ReadFile(path), IsOkAndHolds("new"));
  EXPECT_THAT(ListDirectory(dir.path()), IsOkAndHolds(ElementsAre("a")));
}

TEST(FileTest, SecretsAreWrittenForTheOwnerOnly) {
  const TempDir dir;
  ASSERT_THAT(WriteFileAtomic(dir.Path("key"), "secret", 0600), IsOk());

  struct stat info {};
  ASSERT_EQ(stat(dir.Path("key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST(FileTest, AMissingFileIsNamed) {
  const TempDir dir;
  EXPECT_THAT(ReadFile(dir.Path("gone")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(dir.Path("gone"))));
}

// FIPS 180-4 example: the digest of "abc".
TEST(Sha256Test, MatchesThePublishedExample) {
  const TempDir dir;
  constexpr char kDigest[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  ASSERT_THAT(WriteFileAtomic(dir.Path("abc"), "abc"), IsOk());

  EXPECT_EQ(Sha256Hex("abc"), kDigest);
  EXPECT_THAT(Sha256HexOfFile(dir.Path("abc")), IsOkAndHolds(kDigest));
}

}  // namespace
}  // namespace assay
