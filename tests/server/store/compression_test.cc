#include "server/store/compression.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/log.h"
#include "server/store/artifacts.h"
#include "server/store/backup.h"
#include "server/store/backup_restore.h"
#include "server/store/store.h"
#include "server/store/usage.h"
#include "server/store/verify.h"
#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::store {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::IsOkAndHolds;
using ::assay::testing::TempDir;
using core::RunId;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string LogOf(int i) {
  std::string log;
  for (int k = 0; k < 500; ++k)
    absl::StrAppend(&log, "entry ", i, " has line ", k, "\n");
  return log;
}

// Entries that have ended, each with a log of its own, and one that has not.
class CompressionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    CHECK_OK(MakeDirectories(data_, kPrivateDirectory));
    store_ = *Store::Open(JoinPath(data_, "assay.db"));
    CHECK_OK(WriteFileAtomic(JoinPath(data_, "secret"), "0123456789abcdef", kPrivateFile));
    artifacts_ = *ArtifactStore::Open(JoinPath(data_, "artifacts"));
    world_ = std::make_unique<core::testing::World>(
        [this](const core::Outcome& outcome, const core::State& state) {
          CHECK_OK(store_->Commit(outcome, state));
        });
    CHECK_OK(world_->Sync("w0").status());
    world_->Submit();
    world_->Executing("w0", RunId{1});
    open_ = *artifacts_->Put("result_1.txt", LogOf(0));
    CHECK_OK(world_->Do(core::RecordArtifact{RunId{1}, 1, open_, "w0"}).status());
    for (int i = 1; i <= 3; ++i)
      ended_.push_back(Import(i));
  }

  core::ArtifactRef Import(int i) {
    core::ImportSubmission import{.spec = core::testing::SomeSpec(),
                                  .source_path = absl::StrCat(i)};
    core::ArtifactRef log = *artifacts_->Put("result_0.txt", LogOf(i));
    import.runs.push_back({.log = log, .facts = {}, .file_name = "result_0.txt"});
    CHECK_OK(world_->Do(std::move(import)).status());
    return log;
  }

  static void Finish(Compression* compression) {
    while (true) {
      const absl::StatusOr<bool> is_more = compression->Step();
      ASSERT_THAT(is_more, IsOk());
      if (!*is_more) return;
    }
  }
  void CompressAll() { Finish(Compression::Open(data_)->get()); }

  absl::StatusOr<core::BackupCounts> BackUp() {
    Backup backup({.data_directory = data_,
                   .directory = place_,
                   .version = "0.1.0",
                   .now_us = core::testing::kStart + ++backup_count_});
    while (!backup.is_done()) {
      const auto faults = backup.Step();
      if (!faults.ok()) return faults.status();
      EXPECT_THAT(*faults, IsEmpty());
    }
    return backup.counts();
  }

  static std::vector<std::string> FaultsOf(Verification* verification) {
    std::vector<std::string> faults;
    RunToEnd(verification, [&](const core::StoredFault& fault) {
      faults.push_back(absl::StrCat(fault.file, ": ", fault.object, ": ", fault.problem));
    });
    return faults;
  }
  std::vector<std::string> FaultsOfBackup() {
    BackupVerifier verifier(place_);
    return FaultsOf(&verifier);
  }

  int64_t BytesOfLogs() const {
    const core::StoreUsage usage = *MeasureUsage(data_);
    for (const core::UsageOfKind& kind : usage.kinds)
      if (kind.kind == "artifacts: logs") return kind.bytes;
    return 0;
  }

  TempDir dir_;
  const std::string data_ = dir_.Path("data");
  const std::string place_ = dir_.Path("backup");
  int backup_count_ = 0;
  std::unique_ptr<Store> store_;
  std::unique_ptr<ArtifactStore> artifacts_;
  std::unique_ptr<core::testing::World> world_;
  core::ArtifactRef open_;  // of a run that goes on
  std::vector<core::ArtifactRef> ended_;
};

TEST_F(CompressionTest, CompressesWhatHasEndedAndNothingElse) {
  const int64_t before = BytesOfLogs();
  const auto compression = *Compression::Open(data_);

  Finish(compression.get());

  EXPECT_EQ(compression->counts().file_count, 3);
  EXPECT_EQ(BytesOfLogs(), before - compression->counts().saved_bytes);
  EXPECT_FALSE(artifacts_->IsCompressed(open_.sha256));
  for (const core::ArtifactRef& log : ended_)
    EXPECT_TRUE(artifacts_->IsCompressed(log.sha256));
  Verifier verifier(data_);
  EXPECT_THAT(FaultsOf(&verifier), IsEmpty());

  const core::ArtifactRef later = Import(4);
  Finish(compression.get());
  EXPECT_TRUE(artifacts_->IsCompressed(later.sha256)) << "it follows the log of events";
}

TEST_F(CompressionTest, OneThatIsDamagedIsLeftForVerifyAndHoldsUpNoOther) {
  const std::string damaged = FileOfArtifact(ended_[1].sha256);
  ASSERT_THAT(WriteFileAtomic(JoinPath(data_, damaged), LogOf(77)), IsOk());

  CompressAll();

  EXPECT_TRUE(artifacts_->IsCompressed(ended_[0].sha256));
  EXPECT_TRUE(artifacts_->IsCompressed(ended_[2].sha256));
  Verifier verifier(data_);
  EXPECT_THAT(FaultsOf(&verifier), ElementsAre(HasSubstr(damaged + ": artifact ")));
}

TEST_F(CompressionTest, VerifyNamesTheCompressedFileThatIsDamaged) {
  CompressAll();
  const std::string file = artifacts_->FileOf(ended_[1].sha256);
  std::string bytes = *ReadFile(JoinPath(data_, file));
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  ASSERT_THAT(WriteFileAtomic(JoinPath(data_, file), bytes), IsOk());

  Verifier verifier(data_);
  EXPECT_THAT(FaultsOf(&verifier), ElementsAre(HasSubstr(file + ": artifact " + ended_[1].sha256)));
}

TEST_F(CompressionTest, BackupsHaveWhatIsCompressedAndRestoreIt) {
  CompressAll();

  const auto counts = BackUp();

  ASSERT_THAT(counts, IsOk());
  EXPECT_EQ(counts->linked_artifact_count, 4);
  EXPECT_THAT(FaultsOfBackup(), IsEmpty());
  const std::string restored = dir_.Path("restored");
  const auto ignore = [](const auto&) {};
  ASSERT_THAT(RestoreBackup(place_, restored, ignore, ignore), IsOk());
  const auto artifacts = ArtifactStore::View(JoinPath(restored, "artifacts"));
  for (size_t i = 0; i < ended_.size(); ++i) {
    EXPECT_TRUE(artifacts->IsCompressed(ended_[i].sha256));
    std::string read;
    EXPECT_THAT(
        artifacts->ReadVerified(ended_[i].sha256,
                                [&](absl::string_view piece) { absl::StrAppend(&read, piece); }),
        IsOk());
    EXPECT_EQ(read, LogOf(static_cast<int>(i) + 1));
  }
}

TEST_F(CompressionTest, ABackupFromBeforeComesToTakeNoMoreRoom) {
  ASSERT_THAT(BackUp(), IsOk());
  CompressAll();

  const auto counts = BackUp();

  ASSERT_THAT(counts, IsOk());
  EXPECT_EQ(counts->kept_artifact_count, 4);
  const auto kept = ArtifactStore::View(JoinPath(place_, "artifacts"));
  for (const core::ArtifactRef& log : ended_) {
    EXPECT_TRUE(kept->IsCompressed(log.sha256));
    EXPECT_FALSE(FileExists(JoinPath(place_, FileOfArtifact(log.sha256))));
  }
  EXPECT_THAT(FaultsOfBackup(), IsEmpty());
}

}  // namespace
}  // namespace assay::store
