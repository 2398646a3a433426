#include "common/source/source_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::IsOkAndHolds;
using testing::StatusIs;
using testing::TempDir;

void WriteFile(const std::string& path, absl::string_view content) {
  fs::create_directories(fs::path(path).parent_path());
  testing::WriteFile(path, content);
}

mode_t ModeOf(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

// A source folder as people have them.
struct SourceArchiveTest : ::testing::Test {
  SourceArchiveTest() {
    WriteFile(dir.Path("a/train.py"), "print(1)\n");
    WriteFile(dir.Path("a/lib/model.py"), "x = 2\n");
    WriteFile(dir.Path("a/run.sh"), "#!/bin/sh\n");
    fs::permissions(dir.Path("a/run.sh"), fs::perms(0755));
  }
  std::string Packed(const std::string& folder) {
    const absl::StatusOr<std::string> packed = PackSource(folder);
    EXPECT_THAT(packed, IsOk());
    return packed.value_or("");
  }
  const TempDir dir;
};

TEST_F(SourceArchiveTest, TheSameContentGivesTheSameBytesWhereverAndWheneverItLies) {
  WriteFile(dir.Path("b/run.sh"), "#!/bin/sh\n");
  fs::permissions(dir.Path("b/run.sh"), fs::perms(0755));
  WriteFile(dir.Path("b/lib/model.py"), "x = 2\n");
  WriteFile(dir.Path("b/train.py"), "print(1)\n");
  WriteFile(dir.Path("b/.git/HEAD"), "ref: refs/heads/main\n");
  WriteFile(dir.Path("b/lib/__pycache__/model.pyc"), "bytecode");
  fs::last_write_time(dir.Path("b/train.py"),
                      fs::file_time_type::clock::now() - std::chrono::hours(9));

  EXPECT_EQ(Packed(dir.Path("a")), Packed(dir.Path("b")));

  WriteFile(dir.Path("b/train.py"), "print(2)\n");
  EXPECT_NE(Packed(dir.Path("a")), Packed(dir.Path("b")));
}

TEST_F(SourceArchiveTest, WhatIsUnpackedIsForEverybodyToReadAndForNobodyToWrite) {
  WriteFile(dir.Path("source.tar"), Packed(dir.Path("a")));
  const mode_t before = umask(077);

  EXPECT_THAT(UnpackSource(dir.Path("source.tar"), dir.Path("code")), IsOk());

  umask(before);
  EXPECT_THAT(ReadFile(dir.Path("code/lib/model.py")), IsOkAndHolds("x = 2\n"));
  EXPECT_EQ(ModeOf(dir.Path("code")), 0755u);
  EXPECT_EQ(ModeOf(dir.Path("code/lib")), 0755u);
  EXPECT_EQ(ModeOf(dir.Path("code/train.py")), 0444u);
  EXPECT_EQ(ModeOf(dir.Path("code/run.sh")), 0555u);
}

TEST_F(SourceArchiveTest, WhatIsUnpackedPacksToTheSameBytesAgain) {
  fs::permissions(dir.Path("a/train.py"), fs::perms(0664));  // as some umasks have it
  const std::string packed = Packed(dir.Path("a"));
  testing::WriteFile(dir.Path("a.tar"), packed);
  ASSERT_THAT(UnpackSource(dir.Path("a.tar"), dir.Path("again")), IsOk());
  EXPECT_EQ(Packed(dir.Path("again")), packed);
}

TEST_F(SourceArchiveTest, WhatIsNoSourceIsRefusedByName) {
  EXPECT_THAT(PackSource(dir.Path("nowhere")), StatusIs(absl::StatusCode::kNotFound));
  fs::create_directories(dir.Path("empty/below"));
  EXPECT_THAT(PackSource(dir.Path("empty")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no file")));
  ASSERT_EQ(symlink("/etc/passwd", dir.Path("a/link").c_str()), 0);
  EXPECT_THAT(PackSource(dir.Path("a")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a/link is a symbolic link")));
}

TEST_F(SourceArchiveTest, AFolderWithDataInItIsTooLarge) {
  std::ofstream(dir.Path("a/data.bin")).close();
  fs::resize_file(dir.Path("a/data.bin"), static_cast<uintmax_t>(kSourceBytesMax) + 1);

  EXPECT_THAT(PackSource(dir.Path("a")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at most 64 MiB")));
}

// An archive of one entry, as a hostile submitter could make it.
void WriteArchive(const std::string& path, const char* name, const char* link, mode_t type) {
  archive* const to = archive_write_new();
  archive_write_set_format_ustar(to);
  ASSERT_EQ(archive_write_open_filename(to, path.c_str()), ARCHIVE_OK);
  archive_entry* const entry = archive_entry_new();
  archive_entry_set_pathname(entry, name);
  archive_entry_set_filetype(entry, type);
  archive_entry_set_perm(entry, 06777);
  archive_entry_set_size(entry, type == AE_IFREG && link == nullptr ? 1 : 0);
  if (link != nullptr && type == AE_IFLNK) archive_entry_set_symlink(entry, link);
  if (link != nullptr && type == AE_IFREG) archive_entry_set_hardlink(entry, link);
  archive_write_header(to, entry);
  if (link == nullptr) archive_write_data(to, "x", 1);
  archive_entry_free(entry);
  archive_write_free(to);
}

TEST_F(SourceArchiveTest, NothingIsWrittenOutsideOfTheFolder) {
  struct Case {
    const char* name;
    const char* link;
    mode_t type;
  };
  int number = 0;
  for (const Case& c :
       {Case{"../escaped", nullptr, AE_IFREG}, Case{"/tmp/escaped", nullptr, AE_IFREG},
        Case{"a/../../escaped", nullptr, AE_IFREG}, Case{"link", "/etc", AE_IFLNK},
        Case{"hard", "/etc/passwd", AE_IFREG}, Case{"fifo", "", AE_IFIFO}}) {
    SCOPED_TRACE(c.name);
    const std::string archive = dir.Path("hostile.tar");
    WriteArchive(archive, c.name, c.link, c.type);
    const std::string folder = dir.Path("unpacked" + std::to_string(++number));

    EXPECT_THAT(UnpackSource(archive, folder), StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_TRUE(fs::is_empty(folder));
    EXPECT_FALSE(FileExists(dir.Path("escaped")));
  }
}

TEST_F(SourceArchiveTest, NoSpecialBitSurvives) {
  WriteArchive(dir.Path("set.tar"), "program", nullptr, AE_IFREG);

  EXPECT_THAT(UnpackSource(dir.Path("set.tar"), dir.Path("set")), IsOk());

  EXPECT_EQ(ModeOf(dir.Path("set/program")), 0555u);
}

TEST_F(SourceArchiveTest, WhatIsNoTarIsRefused) {
  WriteFile(dir.Path("x.tar"), "PK\x03\x04 something else");

  EXPECT_THAT(UnpackSource(dir.Path("x.tar"), dir.Path("x")),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace assay
