#include "common/file.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/sha256.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::IsOkAndHolds;
using testing::StatusIs;
using testing::TempDir;
using ::testing::UnorderedElementsAre;

mode_t ModeOf(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777U;
}

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

TEST(FileTest, AFailedWriteLeavesNothing) {
  const TempDir dir;
  ASSERT_THAT(MakeDirectories(dir.Path("a/in the way")), IsOk());

  EXPECT_FALSE(WriteFileAtomic(dir.Path("a"), "text").ok());

  EXPECT_THAT(ListDirectory(dir.path()), IsOkAndHolds(ElementsAre("a")));
}

TEST(FileTest, WhatKilledWritersLeftIsRemoved) {
  const TempDir dir;
  for (const char* name : {"address.tmp17", "secret", ".tmp3", "a.tmp", "b.tmp4x"})
    ASSERT_THAT(WriteFileAtomic(dir.Path(name), ""), IsOk());

  EXPECT_THAT(RemoveTemporaryFiles(dir.path()), IsOkAndHolds(ElementsAre("address.tmp17")));

  EXPECT_THAT(ListDirectory(dir.path()),
              IsOkAndHolds(ElementsAre(".tmp3", "a.tmp", "b.tmp4x", "secret")));
}

TEST(FileTest, DirectoriesHaveTheModeThatWasAskedFor) {
  const TempDir dir;
  const mode_t before = umask(0);
  ASSERT_THAT(MakeDirectories(dir.Path("a/b"), kPrivateDirectory), IsOk());
  ASSERT_THAT(MakeDirectories(dir.Path("a/b"), kPrivateDirectory), IsOk());
  ASSERT_THAT(MakeDirectories(dir.Path("c")), IsOk());
  umask(before);

  EXPECT_EQ(ModeOf(dir.Path("a")), 0700U);
  EXPECT_EQ(ModeOf(dir.Path("a/b")), 0700U);
  EXPECT_EQ(ModeOf(dir.Path("c")), 0755U);
  ASSERT_THAT(WriteFileAtomic(dir.Path("file"), ""), IsOk());
  EXPECT_FALSE(MakeDirectories(dir.Path("file")).ok());
  EXPECT_FALSE(MakeDirectories(dir.Path("file/below")).ok());
}

TEST(FileTest, TreesAreMadePrivate) {
  const TempDir dir;
  const mode_t before = umask(0);
  ASSERT_THAT(MakeDirectories(dir.Path("tree/sub"), 0777), IsOk());
  ASSERT_THAT(WriteFileAtomic(dir.Path("tree/sub/program"), "", 0755), IsOk());
  ASSERT_THAT(WriteFileAtomic(dir.Path("tree/own"), "", 0600), IsOk());
  ASSERT_THAT(WriteFileAtomic(dir.Path("beside"), "", 0644), IsOk());
  ASSERT_EQ(symlink(dir.Path("beside").c_str(), dir.Path("tree/link").c_str()), 0);
  umask(before);

  const auto loose = MakePrivate(dir.Path("tree"));

  ASSERT_THAT(loose, IsOk());
  EXPECT_THAT(*loose, UnorderedElementsAre(dir.Path("tree"), dir.Path("tree/sub"),
                                           dir.Path("tree/sub/program")));
  EXPECT_EQ(ModeOf(dir.Path("tree")), 0700U);
  EXPECT_EQ(ModeOf(dir.Path("tree/sub/program")), 0700U);
  EXPECT_EQ(ModeOf(dir.Path("beside")), 0644U);
  EXPECT_THAT(MakePrivate(dir.Path("tree")), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(MakePrivate(dir.Path("absent")), IsOkAndHolds(IsEmpty()));
}

TEST(FileTest, AMissingFileIsNamed) {
  const TempDir dir;
  EXPECT_THAT(ReadFile(dir.Path("gone")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(dir.Path("gone"))));
}

// Opening any of these for reading as it comes would wait for a writer, read without end, or fail
// late.
TEST(FileTest, OnlyRegularFilesAreReadAndNothingWaits) {
  const TempDir dir;
  ASSERT_EQ(mkfifo(dir.Path("pipe").c_str(), 0600), 0);
  const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  dir.Path("socket").copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);

  const struct {
    std::string path;
    const char* kind;
  } cases[] = {{dir.Path("pipe"), "is a pipe"},
               {dir.Path("socket"), "is a socket"},
               {dir.path(), "is a directory"},
               {"/dev/zero", "is a device"}};
  for (const auto& c : cases) {
    const auto refusal =
        StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr(c.path), HasSubstr(c.kind)));
    EXPECT_THAT(ReadFile(c.path), refusal);
    EXPECT_THAT(OpenRegularFile(c.path), refusal);
    EXPECT_THAT(Sha256HexOfFile(c.path), refusal);
  }
}

TEST(FileTest, AFileAboveItsLimitIsNotRead) {
  const TempDir dir;
  ASSERT_THAT(WriteFileAtomic(dir.Path("a"), "12345"), IsOk());

  EXPECT_THAT(ReadFile(dir.Path("a"), 5), IsOkAndHolds("12345"));
  EXPECT_THAT(ReadFile(dir.Path("a"), 4),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(dir.Path("a")), HasSubstr("more than the 4 bytes"))));
}

// Files of the kernel say that they have no bytes.
TEST(FileTest, AFileWithoutASizeIsReadUpToItsLimit) {
  EXPECT_THAT(ReadFile("/proc/self/status"), IsOkAndHolds(HasSubstr("Pid:")));
  EXPECT_THAT(ReadFile("/proc/self/status", 10), StatusIs(absl::StatusCode::kInvalidArgument));
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
