// Whole runs of one rank in this process: real data on disk, real training.

#include "worker/trainer/loop.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/dataset/cosmo_dataset.h"
#include "common/dataset/pack.h"
#include "common/exit_code.h"
#include "common/file.h"
#include "common/sha256.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"
#include "tests/worker/trainer/loop_fixture.h"
#include "tests/worker/trainer/run_specs.h"
#include "worker/cache/cache_link.h"
#include "worker/cache/node_cache.h"
#include "worker/engine/backends/registry.h"
#include "worker/trainer/failure.h"

namespace assay {
namespace {

using testing::EvalErrors;
using testing::EvalErrorTexts;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::SetHyperparameter;
using testing::StatusIs;
using testing::TempDir;

class TrainingLoopTest : public testing::LoopFixture {
 protected:
  static void SetUpTestSuite() {
    dataset_ = new TempDir;
    dataset::CosmoDatasetSpec spec;
    spec.parameters.mode = dataset::CosmoMode::kBeacon;
    spec.parameters.edge = 32;
    spec.parameters.seed = 5;
    spec.train_samples = 64;
    spec.validation_samples = 16;
    ASSERT_THAT(dataset::GenerateCosmoDataset(dataset_->Path("beacon"), spec, /*threads=*/2),
                IsOk());
  }
  static void TearDownTestSuite() {
    delete dataset_;
    dataset_ = nullptr;
  }

  v1::RunSpec Run() const {
    v1::RunSpec run = Logged(testing::SmallRun());
    run.set_epoch_count_max(2);
    run.mutable_dataset()->set_path(dataset_->Path("beacon"));
    run.mutable_dataset()->set_train_sample_count(64);
    run.mutable_dataset()->set_eval_sample_count(16);
    SetHyperparameter(&run, "opt_base_learning_rate", "0.005");
    SetHyperparameter(&run, "dropout", "0.0");
    return run;
  }

  std::vector<std::string> Errors() const { return EvalErrorTexts(Log()); }

  static TempDir* dataset_;
};

TempDir* TrainingLoopTest::dataset_ = nullptr;

TEST_F(TrainingLoopTest, StopsWithSuccessWhenTheTargetIsReached) {
  v1::RunSpec run = Run();
  run.set_quality_target(10);

  ASSERT_THAT(Train(run), IsOk());

  EXPECT_EQ(Errors().size(), 1U);
  EXPECT_THAT(Log(), HasSubstr("\"status\": \"success\""));
}

TEST_F(TrainingLoopTest, StopsAbortedAfterTheLastEpoch) {
  v1::RunSpec run = Run();
  run.set_quality_target(1e-6);

  ASSERT_THAT(Train(run), IsOk());

  EXPECT_EQ(Errors().size(), 2U);
  EXPECT_THAT(Log(), HasSubstr("\"status\": \"aborted\""));
}

TEST_F(TrainingLoopTest, TheSameSeedGivesTheSameBits) {
  const v1::RunSpec run = Run();
  ASSERT_THAT(Train(run), IsOk());
  const std::vector<std::string> first = Errors();
  ASSERT_THAT(RemoveTree(dir_.Path("result_1.txt")), IsOk());

  ASSERT_THAT(Train(run), IsOk());

  EXPECT_EQ(Errors(), first);
  EXPECT_FALSE(first.empty());
}

TEST_F(TrainingLoopTest, ErrorsInBfloat16RepeatAndAreNearThoseOfFloat) {
  const auto backend = MakeBackend("onednn-bf16");
  if (absl::IsUnavailable(backend.status())) GTEST_SKIP() << backend.status();
  v1::RunSpec run = Run();
  run.set_quality_target(1e-6);
  ASSERT_THAT(Train(run), IsOk());
  run.mutable_trainer()->set_backend("onednn-bf16");
  ASSERT_THAT(Train(run), IsOk());
  ASSERT_THAT(Train(run), IsOk());

  const std::vector<std::string> errors = Errors();  // of three runs, two epochs each
  ASSERT_EQ(errors.size(), 6U);
  for (size_t epoch = 0; epoch < 2; ++epoch) {
    SCOPED_TRACE(epoch);
    const double in_float = std::stod(errors[epoch]);
    EXPECT_NEAR(std::stod(errors[2 + epoch]), in_float, 0.05 * in_float);
    EXPECT_NE(errors[2 + epoch], errors[epoch]);
    EXPECT_EQ(errors[4 + epoch], errors[2 + epoch]);
  }
}

// What is evaluated at once does not show in the result, nor in the training. 5 does not divide the
// 16 samples.
TEST_F(TrainingLoopTest, TheEvaluationBatchAndGradientBucketsDoNotShow) {
  std::vector<double> expected;
  for (const int batch : {0, 1, 5, 16}) {
    SCOPED_TRACE(batch);
    v1::RunSpec run = Run();
    run.set_log_path(dir_.Path(absl::StrCat("batch_", batch)));
    if (batch > 0) SetHyperparameter(&run, "local_eval_batch_size", absl::StrCat(batch));
    if (batch == 16) SetHyperparameter(&run, "gradient_bucket_mib", "8");

    ASSERT_THAT(Train(run), IsOk());

    const std::string log = ReadFile(run.log_path()).value_or("");
    const std::vector<double> errors = EvalErrors(log);
    ASSERT_EQ(errors.size(), 2U);
    if (batch == 0) expected = errors;
    EXPECT_THAT(errors, ::testing::Pointwise(::testing::DoubleNear(1e-6), expected));
    EXPECT_EQ(batch > 0,
              log.find("\"key\": \"local_eval_batch_size\", \"value\": ") != std::string::npos);
    EXPECT_EQ(batch == 16,
              log.find("\"key\": \"gradient_bucket_mib\", \"value\": 8,") != std::string::npos);
  }
}

// A limit that cannot be kept ends the run before its clock starts and names the least; within that
// the run's results are the same digits as without one.
TEST_F(TrainingLoopTest, AMemoryLimitChangesNoResult) {
  const v1::RunSpec free = Run();
  ASSERT_THAT(Train(free), IsOk());
  const std::vector<std::string> expected = EvalErrorTexts(Log());
  EXPECT_EQ(Log().find("memory_limit_mib"), std::string::npos);

  v1::RunSpec tight = Run();
  tight.set_log_path(dir_.Path("tight"));
  SetHyperparameter(&tight, "memory_limit_mib", "1");
  const absl::Status refused = Train(tight);
  const std::string before =
      "memory_limit_mib: 1 MiB are too little for training, whatever is "
      "recomputed; the least is ";
  ASSERT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr(before)));
  EXPECT_EQ(ExitCodeOf(refused), ExitCode::kOutOfMemory);
  EXPECT_EQ(ReadFile(tight.log_path()).value_or("").find("run_start"), std::string::npos);

  std::string least(refused.message());
  least = least.substr(least.find(before) + before.size());
  v1::RunSpec fitting = Run();
  fitting.set_log_path(dir_.Path("fitting"));
  SetHyperparameter(&fitting, "memory_limit_mib", least.substr(0, least.find(' ')));
  ASSERT_THAT(Train(fitting), IsOk());
  const std::string log = ReadFile(fitting.log_path()).value_or("");
  EXPECT_EQ(EvalErrorTexts(log), expected);
  EXPECT_THAT(log, HasSubstr("\"key\": \"memory_limit_mib\""));
}

TEST_F(TrainingLoopTest, AugmentationIsAnotherTrainingThatRepeatsItself) {
  std::vector<std::vector<std::string>> errors;
  for (const char* augmentation : {"none", "flips", "flips_and_permutations", "flips"}) {
    v1::RunSpec run = Run();
    run.set_log_path(dir_.Path(absl::StrCat(augmentation, errors.size())));
    SetHyperparameter(&run, "data_augmentation", absl::StrCat("\"", augmentation, "\""));
    ASSERT_THAT(Train(run), IsOk());
    const std::string log = ReadFile(run.log_path()).value_or("");
    errors.push_back(EvalErrorTexts(log));
    EXPECT_EQ(errors.size() > 1,
              log.find(absl::StrCat("\"key\": \"data_augmentation\", \"value\": \"", augmentation,
                                    "\"")) != std::string::npos);
  }
  ASSERT_EQ(errors[0].size(), 2U);
  EXPECT_NE(errors[0], errors[1]);
  EXPECT_NE(errors[0], errors[2]);
  EXPECT_NE(errors[1], errors[2]);
  EXPECT_EQ(errors[1], errors[3]);
}

// The first epoch is that of any run, the second is not.
TEST_F(TrainingLoopTest, GradientSkippingBeginsAfterTheEpochsAskedFor) {
  ASSERT_THAT(Train(Run()), IsOk());
  const std::vector<std::string> expected = Errors();
  ASSERT_THAT(RemoveTree(dir_.Path("result_1.txt")), IsOk());
  v1::RunSpec run = Run();
  SetHyperparameter(&run, "gradient_skip_layer", "\"conv5\"");
  SetHyperparameter(&run, "gradient_skip_after_epochs", "1");

  ASSERT_THAT(Train(run), IsOk());

  const std::vector<std::string> skipped = Errors();
  ASSERT_EQ(skipped.size(), 2U);
  EXPECT_EQ(skipped[0], expected[0]);
  EXPECT_NE(skipped[1], expected[1]);
  EXPECT_THAT(Log(), HasSubstr("\"key\": \"gradient_skip_layer\", \"value\": \"conv5\""));
  EXPECT_THAT(Log(), HasSubstr("\"key\": \"gradient_skip_after_epochs\", \"value\": 1"));
}

TEST_F(TrainingLoopTest, ALayerThatTheModelLacksEndsTheRunBeforeItStarts) {
  v1::RunSpec run = Run();
  SetHyperparameter(&run, "gradient_skip_layer", "\"conv7\"");
  SetHyperparameter(&run, "gradient_skip_after_epochs", "1");

  const absl::Status status = Train(run);

  EXPECT_EQ(ExitCodeOf(status), ExitCode::kBadSpec);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("gradient_skip_layer: there is no layer \"conv7\""));
  EXPECT_THAT(Log(), ::testing::Not(HasSubstr("run_start")));
}

// Staged bytes are the same bytes, so training is the same training.
TEST_F(TrainingLoopTest, StagingChangesWhereDataIsReadAndNothingElse) {
  v1::RunSpec run = Run();
  ASSERT_THAT(Train(run), IsOk());
  const std::vector<std::string> in_place = Errors();
  ASSERT_THAT(RemoveTree(dir_.Path("result_1.txt")), IsOk());
  run.mutable_dataset()->set_is_staged(true);
  run.set_stage_directory(dir_.Path("stage"));

  ASSERT_THAT(Train(run), IsOk());

  EXPECT_EQ(Errors(), in_place);
  const absl::StatusOr<std::vector<std::string>> staged = ListDirectory(dir_.Path("stage/train"));
  ASSERT_THAT(staged, IsOk());
  EXPECT_EQ(staged->size(), 64U);
}

// Rounds 1.0 and 2.0 time the staging, 3.0 does not: the order in the log shows it.
TEST_F(TrainingLoopTest, TheRoundDecidesWhetherStagingIsTimed) {
  for (const bool is_timed : {true, false}) {
    v1::RunSpec run = Run();
    run.set_quality_target(10);
    run.set_is_staging_timed(is_timed);
    run.set_log_path(dir_.Path(absl::StrCat("timed_", is_timed)));
    run.mutable_dataset()->set_is_staged(true);
    run.set_stage_directory(dir_.Path(absl::StrCat("stage_", is_timed)));

    ASSERT_THAT(Train(run), IsOk());

    const std::string log = ReadFile(run.log_path()).value_or("");
    EXPECT_EQ(log.find("run_start") < log.find("staging_start"), is_timed);
  }
}

// What the step has put there from the node's cache is not copied, and the log says how much it
// was.
TEST_F(TrainingLoopTest, WhatTheNodeCacheHadIsDeclaredAndNotCopied) {
  v1::RunSpec run = Run();
  run.set_quality_target(10);
  run.mutable_dataset()->set_is_staged(true);
  const RealClock clock;
  absl::StatusOr<cache::NodeCache> cache =
      cache::NodeCache::Open({.directory = dir_.Path("cache"), .quota_bytes = int64_t{1} << 30});
  ASSERT_THAT(cache, IsOk());
  const absl::StatusOr<cache::Filled> filled = cache->Stage(run.dataset().path(), &clock);
  ASSERT_THAT(filled, IsOk());
  const absl::StatusOr<cache::Lease> lease = cache->Hold(filled->digest);
  ASSERT_THAT(lease, IsOk());
  for (const bool is_timed : {false, true}) {
    const std::string stage = dir_.Path(absl::StrCat("stage_", is_timed));
    const absl::StatusOr<cache::Linked> linked =
        cache::LinkDataset(*lease, {.target_dir = stage}, clock);
    ASSERT_THAT(linked, IsOk());
    // One that the node has not.
    const std::string missing =
        JoinPath(stage, JoinPath("train", ListDirectory(JoinPath(stage, "train")).value().front()));
    const int64_t missing_bytes = FileSize(missing).value_or(0);
    ASSERT_EQ(unlink(missing.c_str()), 0);
    run.set_is_staging_timed(is_timed);
    run.set_log_path(dir_.Path(absl::StrCat("timed_", is_timed)));
    run.set_stage_directory(stage);
    run.set_node_cache(lease->files_path);

    ASSERT_THAT(Train(run), IsOk());

    const std::string log = ReadFile(run.log_path()).value_or("");
    const std::string said = absl::StrCat("\"cache_hit_bytes\": ", linked->bytes - missing_bytes);
    EXPECT_EQ(absl::StrContains(log, said), !is_timed) << said;
    EXPECT_EQ(absl::StrContains(log, "cache_hit_bytes"), !is_timed);
    EXPECT_TRUE(FileExists(missing));
    struct stat info {};
    const std::string other = ListDirectory(JoinPath(stage, "train")).value().back();
    ASSERT_EQ(stat(JoinPath(JoinPath(stage, "train"), other).c_str(), &info), 0);
    EXPECT_EQ(info.st_nlink, is_timed ? 1U : 2U) << "on the clock every byte is copied";
  }
}

// A run stages from archives as it does from files: the same bytes, timed as the round says, cold
// and compared where it is not timed.
TEST_F(TrainingLoopTest, FromArchivesTheTrainingIsTheSame) {
  v1::RunSpec run = Run();
  run.set_epoch_count_max(1);
  run.mutable_dataset()->set_train_sample_count(16);
  run.mutable_dataset()->set_eval_sample_count(8);
  ASSERT_THAT(Train(run), IsOk());
  const std::vector<std::string> in_place = Errors();
  ASSERT_THAT(
      dataset::PackDataset(
          run.dataset().path(), dir_.Path("packed"),
          {.codec = dataset::ShardCodec::kZstd, .shard_bytes = int64_t{1} << 20, .parts = 2}),
      IsOk());
  run.mutable_dataset()->set_path(dir_.Path("packed"));
  run.mutable_dataset()->set_is_staged(true);
  for (const bool is_timed : {false, true}) {
    run.set_is_staging_timed(is_timed);
    run.set_stage_directory(dir_.Path(absl::StrCat("stage_", is_timed)));
    ASSERT_THAT(RemoveTree(dir_.Path("result_1.txt")), IsOk());

    ASSERT_THAT(Train(run), IsOk());

    EXPECT_EQ(Errors(), in_place);
    EXPECT_EQ(Log().find("run_start") < Log().find("staging_start"), is_timed);
    EXPECT_EQ(ListDirectory(JoinPath(run.stage_directory(), "train")).value().size(), 16U);
    EXPECT_EQ(ListDirectory(JoinPath(run.stage_directory(), "validation")).value().size(), 8U);
  }
}

TEST_F(TrainingLoopTest, ArchivesThatCannotBeUsedAreNamedBeforeTheClockStarts) {
  v1::RunSpec run = Run();
  ASSERT_THAT(dataset::PackDataset(run.dataset().path(), dir_.Path("packed"), {}), IsOk());
  run.mutable_dataset()->set_path(dir_.Path("packed"));
  run.set_stage_directory(dir_.Path("stage"));
  const auto refused = [&](const std::string& why) {
    const absl::Status status = Train(run);
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kBadData) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
    EXPECT_THAT(Log(), ::testing::Not(HasSubstr("run_start")));
  };
  refused("staging = \"node\"");
  run.mutable_dataset()->set_is_staged(true);
  const std::string archive = dir_.Path("packed/shards/00000.tar");
  const std::string good = ReadFile(archive, int64_t{1} << 30).value_or("");
  testing::WriteFile(archive, good.substr(0, good.size() / 2));
  refused("00000.tar cannot be read");
  testing::WriteFile(archive, good);
  const std::string index = dir_.Path("packed/shards.json");
  const std::string text = ReadFile(index).value_or("");
  testing::WriteFile(index, absl::StrReplaceAll(text, {{"train/", "gone/"}}));
  refused("is in no archive that shards.json names");
  ASSERT_THAT(RemoveTree(index), IsOk());
  refused("assay dataset index");
}

// On the clock the digest is not computed, and the trainer's own checks have to find the damage.
TEST_F(TrainingLoopTest, WhatIsStagedOffTheClockIsWhatTheManifestSays) {
  const std::string copy = dir_.Path("damaged");
  v1::RunSpec run = Run();
  std::filesystem::copy(run.dataset().path(), copy, std::filesystem::copy_options::recursive);
  const std::string victim =
      JoinPath(JoinPath(copy, "train"), ListDirectory(JoinPath(copy, "train")).value().front());
  std::string bytes = ReadFile(victim, 1 << 30).value_or("");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  ASSERT_THAT(WriteFileAtomic(victim, bytes), IsOk());
  run.mutable_dataset()->set_path(copy);
  run.mutable_dataset()->set_is_staged(true);
  for (const bool is_timed : {false, true}) {
    run.set_is_staging_timed(is_timed);
    run.set_log_path(dir_.Path(absl::StrCat("timed_", is_timed)));
    run.set_stage_directory(dir_.Path(absl::StrCat("stage_", is_timed)));

    const absl::Status status = Train(run);

    EXPECT_EQ(ExitCodeOf(status), ExitCode::kBadData) << status;
    EXPECT_EQ(absl::StrContains(status.message(), Sha256Hex(bytes)), !is_timed) << status;
  }
}

TEST_F(TrainingLoopTest, AnotherManifestThanTheRegisteredOneIsRefused) {
  v1::RunSpec run = Run();
  run.mutable_dataset()->set_digest(std::string(64, '0'));
  run.mutable_dataset()->set_is_staged(true);
  run.set_stage_directory(dir_.Path("stage"));

  const absl::Status status = Train(run);

  EXPECT_EQ(ExitCodeOf(status), ExitCode::kBadData);
  EXPECT_THAT(std::string(status.message()), HasSubstr("registered with 0000"));
  EXPECT_THAT(Log(), ::testing::Not(HasSubstr("run_start")));
}

TEST_F(TrainingLoopTest, ADamagedSampleEndsTheRunNamingTheFile) {
  const std::string copy = dir_.Path("damaged");
  v1::RunSpec run = Run();
  run.mutable_dataset()->set_is_staged(true);
  run.set_stage_directory(copy);
  ASSERT_THAT(Train(run), IsOk());
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(JoinPath(copy, "train"));
  ASSERT_THAT(names, IsOk());
  const std::string victim = JoinPath(JoinPath(copy, "train"), names->front());
  std::string bytes = ReadFile(victim, 1 << 30).value_or("");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  ASSERT_THAT(WriteFileAtomic(victim, bytes), IsOk());
  run.mutable_dataset()->set_is_staged(false);
  run.mutable_dataset()->set_path(copy);

  const absl::Status status = Train(run);

  EXPECT_EQ(ExitCodeOf(status), ExitCode::kBadData);
  EXPECT_THAT(std::string(status.message()), HasSubstr(names->front()));
}

TEST_F(TrainingLoopTest, AResumedRunIsRefusedWhereItsSpecHasChanged) {
  v1::RunSpec run = Run();
  run.set_epoch_count_max(1);
  SetHyperparameter(&run, "checkpoint_interval_steps", "8");
  ASSERT_THAT(Train(run), IsOk());
  run.set_seed(run.seed() + 1);

  const absl::Status status = Train(run, /*is_resumed=*/true);

  EXPECT_EQ(ExitCodeOf(status), ExitCode::kBadSpec);
  EXPECT_THAT(std::string(status.message()), HasSubstr("another run"));
}

// The node that takes a run up need not keep the dataset, nor keep it where the first one did.
TEST_F(TrainingLoopTest, ARunIsResumedOnANodeWithAnotherCache) {
  v1::RunSpec run = Run();
  run.set_epoch_count_max(1);
  run.set_node_cache("/nvme/cache/files");
  SetHyperparameter(&run, "checkpoint_interval_steps", "8");
  ASSERT_THAT(Train(run), IsOk());
  run.set_epoch_count_max(2);
  run.set_node_cache("");

  EXPECT_THAT(Train(run, /*is_resumed=*/true), IsOk());
}

// More epochs, another place for the log: the limits are not what makes the bits.
TEST_F(TrainingLoopTest, AFinishedRunGoesOnWhereMoreEpochsAreAllowed) {
  v1::RunSpec run = Run();
  SetHyperparameter(&run, "checkpoint_interval_steps", "8");
  ASSERT_THAT(Train(run), IsOk());
  const std::vector<std::string> expected = Errors();
  ASSERT_EQ(expected.size(), 2U);
  ASSERT_THAT(RemoveTree(dir_.Path("result_1.txt")), IsOk());
  ASSERT_THAT(RemoveTree(dir_.Path("result_1.txt.checkpoint")), IsOk());
  run.set_epoch_count_max(1);
  ASSERT_THAT(Train(run), IsOk());
  run.set_epoch_count_max(2);

  ASSERT_THAT(Train(run, /*is_resumed=*/true), IsOk());

  EXPECT_EQ(Errors(), expected);
}

TEST_F(TrainingLoopTest, ARunThatReachedItsTargetIsNotResumed) {
  v1::RunSpec run = Run();
  run.set_quality_target(10);
  SetHyperparameter(&run, "checkpoint_interval_steps", "8");
  ASSERT_THAT(Train(run), IsOk());

  EXPECT_THAT(Train(run, /*is_resumed=*/true),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("reached its target")));
}

TEST_F(TrainingLoopTest, AStopRequestEndsTheRunAborted) {
  stop_ = true;

  const absl::Status status = Train(Run());

  EXPECT_EQ(ExitCodeOf(status), ExitCode::kTerminated);
}

}  // namespace
}  // namespace assay
