#include "server/store/prune.h"

#include <algorithm>
#include <iterator>
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
#include "server/store/verify.h"
#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::store {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using core::RunId;
using core::SubmissionId;
using core::testing::kSecond;
using core::testing::kStart;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kLongAfter = kStart + 1000 * kSecond;

// An entry of one run that has ended with its log, telemetry and progress, and one that has not.
class PruneTest : public ::testing::Test {
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
    log_ = Upload(RunId{1}, "result_1.txt", "the log");
    telemetry_ = Upload(RunId{1}, "telemetry_0.bin", "the telemetry");
    progress_ = Upload(RunId{1}, "progress.jsonl", "the progress");
    shared_ = Upload(RunId{1}, "telemetry_1.bin", "as another file has it");
    Upload(RunId{1}, "caches_0.json", "as another file has it");
    world_->Succeed(RunId{1});
    CHECK_OK(world_
                 ->Do(core::SetScored{.submission = SubmissionId{1}, .reason = "none"},
                      std::string(core::kCoordinator))
                 .status());
    world_->Submit();
    world_->Executing("w0", RunId{2});
    Upload(RunId{2}, "telemetry_0.bin", "of a run that goes on");
  }

  core::ArtifactRef Upload(RunId run, const std::string& name, const std::string& bytes) {
    core::ArtifactRef artifact = *artifacts_->Put(name, bytes);
    CHECK_OK(world_->Do(core::RecordArtifact{run, 1, artifact, "w0"}).status());
    return artifact;
  }

  std::vector<core::PrunableFiles> Find(const PruneLimits& limits) {
    pruning_ = *Pruning::Open(data_, limits);
    std::vector<core::PrunableFiles> all;
    while (!pruning_->is_done()) {
      std::vector<core::PrunableFiles> page = *pruning_->Step();
      std::move(page.begin(), page.end(), std::back_inserter(all));
    }
    return all;
  }
  static std::vector<std::string> NamesOf(const std::vector<core::PrunableFiles>& all) {
    std::vector<std::string> names;
    for (const core::PrunableFiles& files : all)
      for (const core::PrunedArtifact& pruned : files.artifacts)
        names.push_back(absl::StrCat(files.submission.ToString(), " ", files.kind, " ",
                                     pruned.run.ToString(), " ", pruned.artifact.file_name));
    return names;
  }

  // As the coordinator does it.
  void Apply(const std::vector<core::PrunableFiles>& all) {
    for (const core::PrunableFiles& files : all) {
      ASSERT_THAT(
          world_->Do(core::PruneArtifacts{files.submission, "telemetry_days: 1", files.artifacts}),
          IsOk());
      ASSERT_THAT(pruning_->Remove(files.artifacts), IsOk());
    }
  }

  static std::vector<std::string> FaultsOf(Verification* verification) {
    std::vector<std::string> faults;
    RunToEnd(verification, [&](const core::StoredFault& fault) {
      faults.push_back(absl::StrCat(fault.file, ": ", fault.object, ": ", fault.problem));
    });
    return faults;
  }

  TempDir dir_;
  const std::string data_ = dir_.Path("data");
  std::unique_ptr<Store> store_;
  std::unique_ptr<ArtifactStore> artifacts_;
  std::unique_ptr<core::testing::World> world_;
  std::unique_ptr<Pruning> pruning_;
  core::ArtifactRef log_;
  core::ArtifactRef telemetry_;
  core::ArtifactRef progress_;
  core::ArtifactRef shared_;
};

TEST_F(PruneTest, FindsWhatThePolicyLetsGoOfWhatHasEnded) {
  EXPECT_THAT(NamesOf(Find({.telemetry_ended_us = kLongAfter})),
              ElementsAre("e-1 telemetry r-1 telemetry_0.bin"));
  EXPECT_THAT(NamesOf(Find({.telemetry_ended_us = kLongAfter, .progress_ended_us = kLongAfter})),
              ElementsAre("e-1 progress r-1 progress.jsonl", "e-1 telemetry r-1 telemetry_0.bin"));
  EXPECT_THAT(Find({.telemetry_ended_us = kStart, .progress_ended_us = 0}), IsEmpty())
      << "it ended later";
}

TEST_F(PruneTest, WhatIsPrunedIsGoneAndNoFault) {
  Apply(Find({.telemetry_ended_us = kLongAfter}));

  EXPECT_FALSE(artifacts_->Has(telemetry_.sha256));
  for (const core::ArtifactRef& kept : {log_, progress_, shared_})
    EXPECT_TRUE(artifacts_->Has(kept.sha256)) << kept.file_name;
  Verifier verifier(data_);
  EXPECT_THAT(FaultsOf(&verifier), IsEmpty());
  EXPECT_EQ(verifier.counts().artifact_count, 4);
  EXPECT_THAT(Find({.telemetry_ended_us = kLongAfter}), IsEmpty()) << "once is enough";

  ASSERT_THAT(artifacts_->Remove(progress_.sha256), IsOk());
  Verifier again(data_);
  EXPECT_THAT(FaultsOf(&again), ElementsAre(HasSubstr("progress.jsonl of run r-1")))
      << "no event says that it may be gone";
}

// The event is committed first: what a crash leaves is found again.
TEST_F(PruneTest, ACrashBeforeTheFilesGoIsMadeGood) {
  const auto found = Find({.telemetry_ended_us = kLongAfter});
  ASSERT_THAT(world_->Do(core::PruneArtifacts{found[0].submission, "", found[0].artifacts}),
              IsOk());
  Verifier verifier(data_);
  EXPECT_THAT(FaultsOf(&verifier), IsEmpty());

  Apply(Find({.telemetry_ended_us = kLongAfter}));

  EXPECT_FALSE(artifacts_->Has(telemetry_.sha256));
}

TEST_F(PruneTest, BackupsAreWholeWithoutIt) {
  Apply(Find({.telemetry_ended_us = kLongAfter}));
  const std::string place = dir_.Path("backup");
  Backup backup(
      {.data_directory = data_, .directory = place, .version = "0.1.0", .now_us = kStart});
  while (!backup.is_done()) {
    const auto faults = backup.Step();
    ASSERT_THAT(faults, IsOk());
    EXPECT_THAT(*faults, IsEmpty());
  }

  EXPECT_EQ(backup.counts().artifact_count, 4);
  BackupVerifier verifier(place);
  EXPECT_THAT(FaultsOf(&verifier), IsEmpty());
  const auto fail = [](const core::StoredFault& fault) { ADD_FAILURE() << fault.object; };
  const auto restored = RestoreBackup(place, dir_.Path("restored"), fail, [](const auto&) {});
  ASSERT_THAT(restored, IsOk());
  EXPECT_EQ(restored->copied_artifact_count, 4);
}

TEST_F(PruneTest, EvidenceAndWhatGoesOnAreRefusedWhoeverAsks) {
  EXPECT_THAT(world_->Do(core::PruneArtifacts{SubmissionId{1}, "", {{RunId{1}, log_}}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(world_->Do(core::PruneArtifacts{SubmissionId{2}, "", {{RunId{2}, telemetry_}}}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(world_->Do(core::PruneArtifacts{SubmissionId{9}, "", {{RunId{1}, telemetry_}}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace assay::store
