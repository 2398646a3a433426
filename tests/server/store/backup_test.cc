#include "server/store/backup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/log.h"
#include "server/store/artifacts.h"
#include "server/store/backup_directory.h"
#include "server/store/backup_restore.h"
#include "server/store/store.h"
#include "server/store/usage.h"
#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::store {
namespace {

namespace fs = std::filesystem;
using ::assay::testing::IsOk;
using ::assay::testing::IsOkAndHolds;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using core::RunId;
using core::testing::World;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kSecretText[] = "0123456789abcdef";

// A data directory that is written to, and a place for backups of it.
class BackupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    CHECK_OK(MakeDirectories(data_, kPrivateDirectory));
    store_ = *Store::Open(JoinPath(data_, "assay.db"));
    CHECK_OK(WriteFileAtomic(JoinPath(data_, "secret"), kSecretText, kPrivateFile));
    artifacts_ = *ArtifactStore::Open(JoinPath(data_, "artifacts"));
    world_ =
        std::make_unique<World>([this](const core::Outcome& outcome, const core::State& state) {
          CHECK_OK(store_->Commit(outcome, state));
        });
    CHECK_OK(world_->Sync("w0").status());
    world_->Submit();
    world_->Executing("w0", RunId{1});
    for (int i = 0; i < 5; ++i)
      Write();
  }

  // A submission, lines of the run, and an artifact.
  void Write() {
    const int i = ++written_;
    std::vector<core::RunEvent> lines;
    for (int k = 1; k <= 100; ++k)
      lines.push_back({.seq = (i - 1) * 100 + k, .text = absl::StrCat("line ", k), .line = k});
    CHECK_OK(world_->Do(core::AppendRunEvents{RunId{1}, 1, 0, lines, "w0"}).status());
    const core::ArtifactRef artifact = *artifacts_->Put(absl::StrCat("file_", i), BytesOf(i));
    CHECK_OK(world_->Do(core::RecordArtifact{RunId{1}, 1, artifact, "w0"}).status());
    world_->Submit();
  }

  static void Flip(const std::string& path, int64_t offset) {
    const UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
    unsigned char byte = 0;
    CHECK(pread(fd.get(), &byte, 1, offset) == 1) << path << " " << offset;
    byte ^= 4;
    CHECK(pwrite(fd.get(), &byte, 1, offset) == 1);
  }

  static std::string BytesOf(int i) {
    return absl::StrCat(std::string(static_cast<size_t>(3000 * i), 'x'), "end");
  }
  std::string FileOf(int i) const {
    return FileOfArtifact((*artifacts_->Put(absl::StrCat("file_", i), BytesOf(i))).sha256);
  }

  BackupOptions Options(const std::string& directory) {
    return {.data_directory = data_,
            .directory = directory,
            .version = "0.1.0",
            .now_us = core::testing::kStart + ++backup_count_ * core::testing::kSecond};
  }

  // A whole backup; the artifacts that are not in it.
  absl::StatusOr<core::BackupCounts> BackUp(const std::string& directory,
                                            std::vector<std::string>* faults = nullptr) {
    Backup backup(Options(directory));
    while (!backup.is_done()) {
      const auto found = backup.Step();
      if (!found.ok()) return found.status();
      for (const core::StoredFault& fault : *found)
        if (faults != nullptr) faults->push_back(absl::StrCat(fault.file, ": ", fault.object));
    }
    return backup.counts();
  }
  absl::StatusOr<core::BackupCounts> BackUp() { return BackUp(place_); }

  static std::vector<std::string> FaultsOf(const std::string& backup) {
    std::vector<std::string> faults;
    BackupVerifier verifier(backup);
    RunToEnd(&verifier, [&](const core::StoredFault& fault) {
      faults.push_back(absl::StrCat(fault.file, ": ", fault.object, ": ", fault.problem));
    });
    return faults;
  }

  absl::Status Restore(const std::string& directory, std::vector<std::string>* faults = nullptr) {
    return RestoreBackup(
               place_, directory,
               [&](const core::StoredFault& fault) {
                 if (faults != nullptr)
                   faults->push_back(absl::StrCat(fault.file, ": ", fault.object));
               },
               [](const core::BackupCounts&) {})
        .status();
  }

  std::string DatabaseOfBackup() { return JoinPath(place_, ReadManifest(place_)->database); }

  TempDir dir_;
  const std::string data_ = dir_.Path("data");
  const std::string place_ = dir_.Path("backup");
  int written_ = 0;
  int backup_count_ = 0;
  std::unique_ptr<Store> store_;
  std::unique_ptr<ArtifactStore> artifacts_;
  std::unique_ptr<World> world_;
};

TEST_F(BackupTest, HoldsEverythingUpToItsEventAndNothingMore) {
  Backup backup(Options(place_));
  ASSERT_THAT(backup.Step(), IsOk());  // it has begun to read
  const int64_t seq = world_->state().last_seq;
  for (int i = 0; i < 5; ++i)
    Write();
  while (!backup.is_done()) {
    ASSERT_THAT(backup.Step(), IsOkAndHolds(IsEmpty()));
    Write();
  }

  EXPECT_EQ(backup.counts().event_seq, seq);
  EXPECT_EQ(backup.counts().artifact_count, 5);
  EXPECT_EQ(backup.counts().linked_artifact_count, 5) << "one file system";
  EXPECT_EQ(ReadManifest(place_)->event_seq, seq);
  EXPECT_THAT(FaultsOf(place_), IsEmpty());

  const std::string restored = dir_.Path("restored");
  ASSERT_THAT(Restore(restored), IsOk());
  EXPECT_THAT(ReadFile(JoinPath(restored, "secret")), IsOkAndHolds(std::string(kSecretText)));
  EXPECT_THAT(ReadFile(JoinPath(restored, FileOf(3))), IsOkAndHolds(BytesOf(3)));
  Verify(restored, [](const core::StoredFault& fault) {
    ADD_FAILURE() << fault.file << " " << fault.object << " " << fault.problem;
  });
  const auto store = Store::Open(JoinPath(restored, "assay.db"), {.is_database_expected = true});
  ASSERT_THAT(store, IsOk());
  EXPECT_EQ((*store)->Load()->last_seq, seq);
}

TEST_F(BackupTest, IsItsOwnersAlone) {
  ASSERT_THAT(BackUp(), IsOk());
  for (const auto& entry : fs::recursive_directory_iterator(place_)) {
    struct stat info {};
    ASSERT_EQ(stat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & (S_IRWXG | S_IRWXO), 0u) << entry.path();
  }
}

TEST_F(BackupTest, TheSecondTakesOnlyWhatIsNew) {
  ASSERT_THAT(BackUp(), IsOk());
  const std::string first_database = DatabaseOfBackup();
  struct stat before {};
  ASSERT_EQ(stat(JoinPath(place_, FileOf(1)).c_str(), &before), 0);
  Write();

  const auto counts = BackUp();

  ASSERT_THAT(counts, IsOk());
  EXPECT_EQ(counts->kept_artifact_count, 5);
  EXPECT_EQ(counts->linked_artifact_count, 1);
  EXPECT_FALSE(FileExists(first_database));
  EXPECT_EQ(ReadManifest(place_)->event_seq, world_->state().last_seq);
  EXPECT_THAT(FaultsOf(place_), IsEmpty());
  struct stat after {};
  ASSERT_EQ(stat(JoinPath(place_, FileOf(1)).c_str(), &after), 0);
  EXPECT_EQ(after.st_ino, before.st_ino);
}

TEST_F(BackupTest, CopiesToAnotherFileSystem) {
  if (!FileExists("/dev/shm")) GTEST_SKIP() << "there is no second file system";
  std::string other = "/dev/shm/assay_backup_XXXXXX";
  ASSERT_NE(mkdtemp(other.data()), nullptr);
  struct stat here {};
  struct stat there {};
  ASSERT_EQ(stat(data_.c_str(), &here), 0);
  ASSERT_EQ(stat(other.c_str(), &there), 0);

  const auto counts = BackUp(other);

  EXPECT_THAT(counts, IsOk());
  if (here.st_dev != there.st_dev) {
    EXPECT_EQ(counts->copied_artifact_count, 5);
  }
  EXPECT_THAT(FaultsOf(other), IsEmpty());
  EXPECT_THAT(RemoveTree(other), IsOk());
}

// Given up after each of its steps in turn, as by a client that goes: the backup before is whole.
TEST_F(BackupTest, TheOneBeforeStaysWholeUntilTheNextIs) {
  ASSERT_THAT(BackUp(), IsOk());
  const int64_t seq = world_->state().last_seq;
  Write();
  for (int step_count = 1;; ++step_count) {
    Backup backup(Options(place_));
    for (int i = 0; i < step_count && !backup.is_done(); ++i)
      ASSERT_THAT(backup.Step(), IsOk());
    if (backup.is_done()) break;
    EXPECT_EQ(ReadManifest(place_)->event_seq, seq);
    EXPECT_THAT(Restore(dir_.Path(absl::StrCat("after_", step_count))),
                StatusIs(absl::StatusCode::kFailedPrecondition))
        << "it is being written";
  }
  EXPECT_EQ(ReadManifest(place_)->event_seq, world_->state().last_seq);
  EXPECT_THAT(FaultsOf(place_), IsEmpty());
}

TEST_F(BackupTest, WhatAKillHasLeftIsNoBackupAndNotInTheWay) {
  {
    Backup backup(Options(place_));
    ASSERT_THAT(backup.Step(), IsOk());
    ASSERT_THAT(backup.Step(), IsOk());
    // As a kill would leave it.
    fs::copy(place_, dir_.Path("killed"), fs::copy_options::recursive);
  }
  EXPECT_THAT(ReadManifest(dir_.Path("killed")), StatusIs(absl::StatusCode::kNotFound));

  EXPECT_THAT(BackUp(dir_.Path("killed")), IsOk());

  EXPECT_THAT(FaultsOf(dir_.Path("killed")), IsEmpty());
  EXPECT_THAT(*ListDirectory(dir_.Path("killed")), SizeIs(5))
      << "artifacts, backup.json, database, lock, secret";
}

TEST_F(BackupTest, RefusesPlacesThatAreNoneForIt) {
  EXPECT_THAT(BackUp("relative/backup"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(BackUp(JoinPath(data_, "backup")), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(BackUp(dir_.Path("")), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(BackUp(dir_.Path("no/such/parent")), StatusIs(absl::StatusCode::kNotFound));
  ASSERT_THAT(MakeDirectories(dir_.Path("photos")), IsOk());
  ASSERT_THAT(WriteFileAtomic(dir_.Path("photos/cat.jpg"), "meow"), IsOk());
  EXPECT_THAT(BackUp(dir_.Path("photos")).status().message(), HasSubstr("cat.jpg"));
  EXPECT_EQ(*ReadFile(dir_.Path("photos/cat.jpg")), "meow");
}

// A coordinator that has lost events, or another one, does not throw away the backup that has them.
TEST_F(BackupTest, RefusesToReplaceABackupThatKnowsMore) {
  ASSERT_THAT(BackUp(), IsOk());
  ASSERT_THAT(Restore(dir_.Path("older")), IsOk());
  Write();
  ASSERT_THAT(BackUp(), IsOk());

  Backup backup({.data_directory = dir_.Path("older"), .directory = place_, .version = "0.1.0"});

  const auto refused = backup.Step();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(refused.status().message(), HasSubstr("does not have"));
  EXPECT_THAT(FaultsOf(place_), IsEmpty());
}

TEST_F(BackupTest, NamesArtifactsThatTheCoordinatorHasLostAndKeepsTheRest) {
  ASSERT_THAT(RemoveTree(JoinPath(data_, FileOf(2))), IsOk());
  std::vector<std::string> faults;

  EXPECT_THAT(BackUp(place_, &faults), IsOk());

  EXPECT_THAT(faults, ElementsAre(AllOf(HasSubstr("artifacts/"), HasSubstr("file_2 of run r-1"))));
  EXPECT_THAT(FaultsOf(place_), ElementsAre(HasSubstr("file_2 of run r-1")));
}

// ---------------------------------------------------------------------------------- damage

TEST_F(BackupTest, AFlippedBitAnywhereIsNamedByFileAndObject) {
  ASSERT_THAT(BackUp(dir_.Path("whole")), IsOk());
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(dir_.Path("whole"))) {
    if (entry.is_regular_file() && entry.file_size() > 0)
      files.push_back(fs::relative(entry.path(), dir_.Path("whole")).string());
  }
  ASSERT_THAT(files, SizeIs(8)) << "five artifacts";
  for (const std::string& file : files) {
    fs::remove_all(place_);
    fs::copy(dir_.Path("whole"), place_, fs::copy_options::recursive);
    const std::string path = JoinPath(place_, file);
    const int64_t size = *FileSize(path);
    for (const int64_t offset : {int64_t{0}, size / 2, size - 1}) {
      Flip(path, offset);
      EXPECT_THAT(FaultsOf(place_), Contains(HasSubstr(absl::StrCat(file, ": ")))) << offset;
      Flip(path, offset);
    }
    EXPECT_THAT(FaultsOf(place_), IsEmpty());
  }
}

TEST_F(BackupTest, ADamagedDatabaseIsNamedByItsPageAndNotRestored) {
  ASSERT_THAT(BackUp(), IsOk());
  Flip(DatabaseOfBackup(), 3 * 4096 + 100);
  std::vector<std::string> faults;

  EXPECT_THAT(Restore(dir_.Path("restored"), &faults), StatusIs(absl::StatusCode::kDataLoss));

  EXPECT_THAT(faults, Contains(HasSubstr(".db: page 4 (")));
  EXPECT_FALSE(FileExists(dir_.Path("restored")));
}

TEST_F(BackupTest, ADamagedArtifactIsNamedAndTheRestIsRestored) {
  ASSERT_THAT(BackUp(), IsOk());
  // Not the coordinator's own, to which it is a second name.
  const std::string path = JoinPath(place_, FileOf(4));
  fs::copy_file(path, path + ".copy");
  ASSERT_THAT(RenameSynced(path + ".copy", path), IsOk());
  Flip(path, 5000);
  std::vector<std::string> faults;

  EXPECT_THAT(Restore(dir_.Path("restored"), &faults), IsOk());

  EXPECT_THAT(faults, ElementsAre(HasSubstr(absl::StrCat(FileOf(4), ": artifact"))));
  EXPECT_FALSE(FileExists(dir_.Path(absl::StrCat("restored/", FileOf(4)))));
  EXPECT_THAT(ReadFile(dir_.Path(absl::StrCat("restored/", FileOf(5)))), IsOkAndHolds(BytesOf(5)));
}

TEST_F(BackupTest, NothingIsOverwritten) {
  ASSERT_THAT(BackUp(), IsOk());
  ASSERT_THAT(MakeDirectories(dir_.Path("taken")), IsOk());
  ASSERT_THAT(WriteFileAtomic(dir_.Path("taken/assay.db"), "mine"), IsOk());

  EXPECT_THAT(Restore(dir_.Path("taken")), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(Restore(data_), StatusIs(absl::StatusCode::kFailedPrecondition));

  EXPECT_THAT(ReadFile(dir_.Path("taken/assay.db")), IsOkAndHolds(std::string("mine")));
  EXPECT_THAT(*ListDirectory(dir_.Path("taken")), ElementsAre("assay.db"));
}

// The mark of the coordinator that was lost keeps its ids from being given again.
TEST_F(BackupTest, TheLostCoordinatorsMarkKeepsIdsFromBeingReused) {
  ASSERT_THAT(BackUp(), IsOk());
  Write();
  const int64_t last_submission = world_->state().last_submission;
  store_.reset();
  const std::string restored = dir_.Path("restored");
  ASSERT_THAT(Restore(restored), IsOk());
  fs::copy_file(JoinPath(data_, "mark"), JoinPath(restored, "mark"),
                fs::copy_options::overwrite_existing);

  const std::string path = JoinPath(restored, "assay.db");
  EXPECT_THAT(Store::Open(path), StatusIs(absl::StatusCode::kDataLoss));
  const auto store = Store::Open(path, {.is_loss_accepted = true, .now_us = 1});

  ASSERT_THAT(store, IsOk());
  EXPECT_EQ((*store)->Load()->last_submission, last_submission);
}

// ----------------------------------------------------------------------------------- usage

TEST_F(BackupTest, UsageCountsByKind) {
  const core::ArtifactRef log = *artifacts_->Put("result_1.txt", "a log");
  CHECK_OK(world_->Do(core::RecordArtifact{RunId{1}, 1, log, "w0"}).status());
  ASSERT_THAT(WriteFileAtomic(JoinPath(data_, "assay.db.v3.bak"), "older"), IsOk());

  const auto usage = MeasureUsage(data_);

  ASSERT_THAT(usage, IsOk());
  std::vector<std::string> kinds;
  for (const core::UsageOfKind& kind : usage->kinds)
    kinds.push_back(absl::StrCat(kind.kind, " ", kind.count));
  EXPECT_THAT(kinds, AllOf(Contains("database 1"), Contains("artifacts: logs 1"),
                           Contains("artifacts: other files of runs 5"),
                           Contains("copies before migrations 1"), Contains("write-ahead log 2")));
  EXPECT_TRUE(std::is_sorted(usage->kinds.begin(), usage->kinds.end(),
                             [](const auto& a, const auto& b) { return a.bytes > b.bytes; }));
  EXPECT_GT(usage->free_bytes, 0);
}

}  // namespace
}  // namespace assay::store
