#include "worker/data/archive_staging.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/dataset/shards.h"
#include "common/file.h"
#include "common/sha256.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"

namespace assay::data {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using ::assay::testing::WriteFile;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A member, and what makes it another than a plain file.
struct MemberSpec {
  std::string name;
  std::string content;
  std::function<void(archive_entry*)> change = [](archive_entry*) {};
};

void WriteArchive(const std::string& path, const std::vector<MemberSpec>& members, int filter) {
  const std::unique_ptr<archive, int (*)(archive*)> to(archive_write_new(), archive_write_free);
  ASSERT_EQ(archive_write_set_format_pax(to.get()), ARCHIVE_OK);
  ASSERT_EQ(archive_write_add_filter(to.get(), filter), ARCHIVE_OK);
  ASSERT_EQ(archive_write_open_filename(to.get(), path.c_str()), ARCHIVE_OK);
  for (const MemberSpec& member : members) {
    const std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(archive_entry_new(),
                                                                         archive_entry_free);
    archive_entry_set_pathname(entry.get(), member.name.c_str());
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(member.content.size()));
    member.change(entry.get());
    ASSERT_EQ(archive_write_header(to.get(), entry.get()), ARCHIVE_OK) << member.name;
    if (archive_entry_size(entry.get()) > 0)
      archive_write_data(to.get(), member.content.data(), member.content.size());
  }
  ASSERT_EQ(archive_write_close(to.get()), ARCHIVE_OK);
}

class ArchiveStagingTest : public ::testing::Test {
 protected:
  ArchiveStagingTest() {
    EXPECT_THAT(MakeDirectories(source_.Path("shards")), IsOk());
    for (int i = 0; i < 12; ++i) {
      const std::string name = absl::StrCat(i < 9 ? "train/" : "validation/", 10 + i);
      manifest_.files.push_back({.path = name,
                                 .bytes = static_cast<int64_t>(Content(i).size()),
                                 .sha256 = Sha256Hex(Content(i))});
      job_.files.push_back(
          {.name = name, .bytes = manifest_.files.back().bytes, .sha256 = Sha256Hex(Content(i))});
    }
  }

  // 3 is empty; 4 is larger than what is read or written at once.
  static std::string Content(int i) {
    const size_t size = i == 3 ? 0 : i == 4 ? (size_t{5} << 20) + 17 : static_cast<size_t>(777 * i);
    std::string content(size, '\0');
    for (size_t j = 0; j < size; ++j)
      content[j] = static_cast<char>(j * 31 + static_cast<size_t>(i));
    return content;
  }

  std::vector<MemberSpec> Members(int begin, int end) const {
    std::vector<MemberSpec> members;
    for (int i = begin; i < end; ++i)
      members.push_back({manifest_.files[static_cast<size_t>(i)].path, Content(i)});
    return members;
  }

  std::string Shard(const std::string& name) const {
    return JoinPath(source_.Path("shards"), name);
  }

  absl::StatusOr<Staged> Stage() {
    const absl::StatusOr<std::vector<std::string>> shards = dataset::ListShards(source_.path());
    EXPECT_THAT(shards, IsOk());
    return StageArchives(*shards, manifest_, job_, &clock_);
  }

  const RealClock clock_{};
  const TempDir source_;
  const TempDir target_;
  dataset::Manifest manifest_;
  StagingJob job_ = {
      .source_dir = source_.path(), .target_dir = target_.Path("in/here"), .is_cold = true};
};

TEST_F(ArchiveStagingTest, EveryByteOfEveryKindOfArchive) {
  WriteArchive(Shard("a.tar"), Members(0, 3), ARCHIVE_FILTER_NONE);
  WriteArchive(Shard("b.tar.gz"), Members(3, 6), ARCHIVE_FILTER_GZIP);
  WriteArchive(Shard("c.tar.zst"), Members(6, 11), ARCHIVE_FILTER_ZSTD);
  WriteArchive(Shard("d.tgz"),
               {{"manifest.json", "{}"},
                {"./train", "", [](archive_entry* e) { archive_entry_set_filetype(e, AE_IFDIR); }},
                {"./validation/21", Content(11)}},
               ARCHIVE_FILTER_GZIP);
  WriteFile(Shard("README"), "not an archive");

  const absl::StatusOr<Staged> staged = Stage();

  ASSERT_THAT(staged, IsOk());
  EXPECT_EQ(staged->files, 12);
  for (int i = 0; i < 12; ++i)
    EXPECT_TRUE(
        ReadFile(JoinPath(job_.target_dir, manifest_.files[static_cast<size_t>(i)].path), 1 << 24)
            .value_or("missing") == Content(i))
        << i;
  EXPECT_FALSE(FileExists(JoinPath(job_.target_dir, "manifest.json")));
}

TEST_F(ArchiveStagingTest, WhatIsThereAlreadyIsPassedOver) {
  WriteArchive(Shard("a.tar.zst"), Members(0, 12), ARCHIVE_FILTER_ZSTD);
  job_.files = {job_.files[5], job_.files[7]};

  const absl::StatusOr<Staged> staged = Stage();

  ASSERT_THAT(staged, IsOk());
  EXPECT_EQ(staged->files, 2);
  EXPECT_EQ(ListDirectory(JoinPath(job_.target_dir, "train")).value(),
            (std::vector<std::string>{"15", "17"}));
}

TEST_F(ArchiveStagingTest, AFileThatNoArchiveHasIsNamed) {
  WriteArchive(Shard("a.tar"), Members(0, 11), ARCHIVE_FILTER_NONE);

  EXPECT_THAT(Stage(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("validation/21")));
}

// Each hides behind the name, the type or the size of a member; nothing of it reaches the disk.
TEST_F(ArchiveStagingTest, HostileMembersAreRefusedByName) {
  const auto type = [](int file_type) {
    return [file_type](archive_entry* entry) {
      archive_entry_set_filetype(entry, static_cast<unsigned>(file_type));
      archive_entry_set_size(entry, 0);
    };
  };
  struct Case {
    MemberSpec member;
    std::string why;
  };
  const std::string good = manifest_.files[5].path;
  const std::vector<Case> cases = {
      {{"../escaped", "x"}, "is not in the dataset's manifest"},
      {{"train/../../escaped", "x"}, "is not in the dataset's manifest"},
      {{target_.Path("escaped"), "x"}, "is not in the dataset's manifest"},
      {{good, "",
        [](archive_entry* e) {
          archive_entry_set_symlink(e, "/etc/passwd");
          archive_entry_set_filetype(e, AE_IFLNK);
        }},
       "is a symbolic link"},
      {{good, "", [](archive_entry* e) { archive_entry_set_hardlink(e, "/etc/passwd"); }},
       "is a hard link"},
      {{good, "", type(AE_IFCHR)}, "is a device"},
      {{good, "", type(AE_IFBLK)}, "is a device"},
      {{good, "", type(AE_IFIFO)}, "a pipe"},
      {{good, Content(5) + "more"}, "but the manifest says"},
      {{good, Content(5), [](archive_entry* e) { archive_entry_sparse_add_entry(e, 0, 512); }},
       "is sparse"},
  };
  for (const Case& one : cases) {
    WriteArchive(Shard("a.tar.zst"), {one.member}, ARCHIVE_FILTER_ZSTD);

    EXPECT_THAT(Stage(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  AllOf(HasSubstr("a.tar.zst"), HasSubstr(one.member.name),
                                        HasSubstr(one.why))));

    EXPECT_FALSE(FileExists(target_.Path("escaped")));
    EXPECT_FALSE(FileExists(target_.Path("in/escaped")));
    EXPECT_FALSE(FileExists(JoinPath(job_.target_dir, good)));
  }
}

TEST_F(ArchiveStagingTest, AMemberThatIsThereTwiceIsRefused) {
  WriteArchive(Shard("a.tar"), Members(0, 7), ARCHIVE_FILTER_NONE);
  WriteArchive(Shard("b.tar"), Members(6, 12), ARCHIVE_FILTER_NONE);

  EXPECT_THAT(Stage(), StatusIs(absl::StatusCode::kInvalidArgument,
                                AllOf(HasSubstr("train/16"), HasSubstr("twice"))));
}

TEST_F(ArchiveStagingTest, OtherBytesAreFoundAndLeftOut) {
  std::vector<MemberSpec> members = Members(0, 12);
  members[6].content[100] ^= 1;
  WriteArchive(Shard("a.tar.gz"), members, ARCHIVE_FILTER_GZIP);

  EXPECT_THAT(Stage(), StatusIs(absl::StatusCode::kDataLoss,
                                AllOf(HasSubstr("train/16"), HasSubstr("SHA-256"))));

  EXPECT_FALSE(FileExists(JoinPath(job_.target_dir, "train/16")));
  EXPECT_FALSE(FileExists(JoinPath(job_.target_dir, "train/16.staging")));
}

// What was damaged on the way is read once more. The archive is small enough to be read at once, so
// it is whole again before anybody looks at what was wrong.
TEST_F(ArchiveStagingTest, DamageOnTheWayIsReadOnceMore) {
  std::vector<MemberSpec> members = Members(0, 12);
  members.erase(members.begin() + 4);
  job_.files.erase(job_.files.begin() + 4);
  WriteArchive(Shard("good.tar"), members, ARCHIVE_FILTER_NONE);
  const std::string good = ReadFile(Shard("good.tar"), 1 << 24).value_or("");
  ASSERT_EQ(unlink(Shard("good.tar").c_str()), 0);
  members[6].content[100] ^= 1;
  WriteArchive(Shard("a.tar"), members, ARCHIVE_FILTER_NONE);
  job_.is_cold = false;
  job_.placed = [&](std::span<const FileToStage> files) {
    if (files.front().name == "train/10") WriteFile(Shard("a.tar"), good);
    return absl::OkStatus();
  };

  const absl::StatusOr<Staged> staged = Stage();

  ASSERT_THAT(staged, IsOk());
  EXPECT_EQ(staged->retries, 1);
  EXPECT_EQ(staged->files, 11) << "what was written is not written again";
  for (size_t i = 0; i < members.size(); ++i)
    EXPECT_EQ(Sha256Hex(ReadFile(JoinPath(job_.target_dir, job_.files[i].name)).value_or("")),
              job_.files[i].sha256);
}

// On the clock nobody computes digests: then the size is all that is compared.
TEST_F(ArchiveStagingTest, WithoutADigestAMembersSizeIsCompared) {
  std::vector<MemberSpec> members = Members(0, 12);
  members[6].content[100] ^= 1;
  WriteArchive(Shard("a.tar"), members, ARCHIVE_FILTER_NONE);
  for (FileToStage& file : job_.files)
    file.sha256.clear();
  EXPECT_THAT(Stage(), IsOk());
  members[6].content += "more";
  WriteArchive(Shard("a.tar"), members, ARCHIVE_FILTER_NONE);

  EXPECT_THAT(Stage(), StatusIs(absl::StatusCode::kInvalidArgument,
                                AllOf(HasSubstr("a.tar"), HasSubstr("train/16"))));
}

TEST_F(ArchiveStagingTest, AnArchiveThatIsCutIsDamaged) {
  for (const int filter : {ARCHIVE_FILTER_NONE, ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_ZSTD}) {
    WriteArchive(Shard("a.tar"), Members(0, 12), filter);
    const std::string whole = ReadFile(Shard("a.tar"), 1 << 24).value_or("");
    WriteFile(Shard("a.tar"), whole.substr(0, whole.size() / 2));

    EXPECT_THAT(Stage(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("a.tar")));
  }
  WriteFile(Shard("a.tar"), "this is no archive at all, but a text of some length");
  EXPECT_THAT(Stage(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("a.tar")));
}

}  // namespace
}  // namespace assay::data
