// Whole runs of DeepCAM: synthetic snapshots on disk, a narrow network, real training.

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/dataset/climate_dataset.h"
#include "common/exit_code.h"
#include "common/file.h"
#include "common/json_reader.h"
#include "common/mllog.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/trainer/loop_fixture.h"
#include "tests/worker/trainer/run_specs.h"
#include "worker/trainer/failure.h"
#include "worker/trainer/loop.h"
#include "worker/trainer/workload.h"

namespace assay {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::SetHyperparameter;
using testing::StatusIs;
using testing::TempDir;

v1::RunSpec DeepcamRun() {
  v1::RunSpec run = testing::SmallRun();
  run.clear_hyperparameters();
  run.set_benchmark("deepcam");
  run.set_round("deepcam-mini");
  run.set_quality_target(0.82);
  run.set_quality_key("eval_accuracy");
  run.mutable_dataset()->set_train_sample_count(9);
  run.mutable_dataset()->set_eval_sample_count(3);
  for (const auto& [key, json] :
       std::vector<std::pair<std::string, std::string>>{{"global_batch_size", "2"},
                                                        {"opt_name", "\"LAMB\""},
                                                        {"opt_lr", "0.01"},
                                                        {"opt_weight_decay", "0.01"},
                                                        {"scheduler_type", "\"multistep\""},
                                                        {"scheduler_milestones", "[100]"},
                                                        {"scheduler_lr_warmup_steps", "2"},
                                                        {"map_height", "32"},
                                                        {"map_width", "48"},
                                                        {"base_filter_count", "4"},
                                                        {"middle_block_count", "1"}})
    SetHyperparameter(&run, key, json);
  return run;
}

class DeepcamLoopTest : public testing::LoopFixture {
 protected:
  static void SetUpTestSuite() {
    dataset_ = new TempDir;
    const dataset::ClimateDatasetSpec spec = {.parameters = {.seed = 2, .extents = {32, 48}},
                                              .train_samples = 9,
                                              .validation_samples = 3};
    ASSERT_THAT(dataset::GenerateClimateDataset(dataset_->Path("cam"), spec, /*threads=*/2),
                IsOk());
  }
  static void TearDownTestSuite() {
    delete dataset_;
    dataset_ = nullptr;
  }

  v1::RunSpec Run() const {
    v1::RunSpec run = Logged(DeepcamRun());
    run.mutable_dataset()->set_path(dataset_->Path("cam"));
    return run;
  }

  // "key" of each record, with its value where `with_values`.
  std::vector<std::string> Records(bool with_values) const {
    std::vector<std::string> records;
    const std::string text = Log();
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      const MllogLine read = ReadMllogLine(line);
      std::string storage;
      records.emplace_back(MllogKey(read, &storage));
      if (with_values) absl::StrAppend(&records.back(), "=", std::string(read.value_json));
    }
    return records;
  }

  static TempDir* dataset_;
};

TempDir* DeepcamLoopTest::dataset_ = nullptr;

// Two moments, a count of steps, and running statistics: all of it must go on.
TEST_F(DeepcamLoopTest, ResumesToTheSameBits) {
  v1::RunSpec run = Run();
  run.set_epoch_count_max(3);
  run.set_quality_target(1);
  SetHyperparameter(&run, "checkpoint_interval_steps", "3");
  ASSERT_THAT(Train(run), IsOk());
  const std::string checkpoint = dir_.Path("result_1.txt.checkpoint");
  const std::string expected = ReadFile(checkpoint, 1 << 30).value_or("");
  ASSERT_FALSE(expected.empty());
  ASSERT_THAT(RemoveTree(checkpoint), IsOk());
  ASSERT_THAT(RemoveTree(run.log_path()), IsOk());

  for (const int epochs : {1, 2, 3}) {
    run.set_epoch_count_max(epochs);
    ASSERT_THAT(Train(run, /*is_resumed=*/true), IsOk());
  }

  EXPECT_TRUE(ReadFile(checkpoint, 1 << 30).value_or("") == expected);
}

// The order of the reference (specification, section 9), with the model's keys of a facility round.
TEST_F(DeepcamLoopTest, FollowsTheReferencesOrderOfKeys) {
  v1::RunSpec run = Run();
  run.set_quality_target(0.1);

  ASSERT_THAT(Train(run), IsOk());

  EXPECT_THAT(Records(false), ElementsAreArray({"submission_benchmark",
                                                "submission_org",
                                                "submission_division",
                                                "submission_status",
                                                "submission_platform",
                                                "init_start",
                                                "seed",
                                                "number_of_ranks",
                                                "number_of_nodes",
                                                "accelerators_per_node",
                                                "global_batch_size",
                                                "batchnorm_group_size",
                                                "gradient_accumulation_frequency",
                                                "checkpoint",
                                                "opt_name",
                                                "opt_lr",
                                                "opt_bias_correction",
                                                "opt_betas",
                                                "opt_eps",
                                                "opt_weight_decay",
                                                "opt_grad_averaging",
                                                "opt_max_grad_norm",
                                                "scheduler_type",
                                                "scheduler_milestones",
                                                "scheduler_decay_rate",
                                                "scheduler_lr_warmup_steps",
                                                "scheduler_lr_warmup_factor",
                                                "map_height",
                                                "map_width",
                                                "base_filter_count",
                                                "middle_block_count",
                                                "train_samples",
                                                "eval_samples",
                                                "staging_start",
                                                "staging_stop",
                                                "init_stop",
                                                "run_start",
                                                "epoch_start",
                                                "learning_rate",
                                                "train_accuracy",
                                                "train_loss",
                                                "eval_start",
                                                "eval_accuracy",
                                                "eval_loss",
                                                "target_accuracy_reached",
                                                "eval_stop",
                                                "epoch_stop",
                                                "run_stop"}));
  EXPECT_THAT(Records(true), ::testing::IsSupersetOf(
                                 {"opt_name=\"LAMB\"", "opt_betas=[0.9, 0.999]", "opt_eps=1e-06",
                                  "opt_max_grad_norm=1.0", "scheduler_milestones=[100]",
                                  "learning_rate=0.005", "target_accuracy_reached=0.1"}));
  const std::string log = ReadFile(run.log_path()).value_or("");
  EXPECT_THAT(log, HasSubstr("\"epoch_num\": 1, \"step_num\": 4}"));
  EXPECT_THAT(log, HasSubstr("\"status\": \"success\""));
}

TEST_F(DeepcamLoopTest, TheSameSeedGivesTheSameBitsAndStagingChangesNothing) {
  v1::RunSpec run = Run();
  ASSERT_THAT(Train(run), IsOk());
  const std::vector<std::string> first = Records(true);
  for (const bool is_staged : {false, true}) {
    ASSERT_THAT(RemoveTree(dir_.Path("result_1.txt")), IsOk());
    run.mutable_dataset()->set_is_staged(is_staged);
    run.set_stage_directory(dir_.Path("stage"));

    ASSERT_THAT(Train(run), IsOk());

    std::vector<std::string> records = Records(true);
    std::erase_if(records, [](const std::string& record) {
      return record.find("staging") != std::string::npos;
    });
    std::vector<std::string> expected = first;
    std::erase_if(expected, [](const std::string& record) {
      return record.find("staging") != std::string::npos;
    });
    EXPECT_EQ(records, expected);
  }
  EXPECT_TRUE(FileExists(dir_.Path("stage/stats.h5")));
}

TEST_F(DeepcamLoopTest, ADamagedSnapshotOrMissingStatisticsEndTheRunNamingTheFile) {
  const std::string copy = dir_.Path("copy");
  ASSERT_THAT(MakeDirectories(copy), IsOk());
  ASSERT_EQ(std::system(absl::StrCat("cp -r ", dataset_->Path("cam"), "/. ", copy).c_str()), 0);
  v1::RunSpec run = Run();
  run.mutable_dataset()->set_path(copy);
  const std::string victim = JoinPath(copy, dataset::ClimateFileName(dataset::Split::kTrain, 5));
  ASSERT_THAT(WriteFileAtomic(victim, "no HDF5"), IsOk());

  const absl::Status damaged = Train(run);

  EXPECT_EQ(ExitCodeOf(damaged), ExitCode::kBadData);
  EXPECT_THAT(std::string(damaged.message()), HasSubstr(victim));
  ASSERT_THAT(RemoveTree(JoinPath(copy, "stats.h5")), IsOk());
  const absl::Status missing = Train(run);
  EXPECT_EQ(ExitCodeOf(missing), ExitCode::kBadData);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("stats.h5"));
}

TEST(DeepcamSpecTest, ReadsTheReferencesHyperparameters) {
  v1::RunSpec run = DeepcamRun();
  SetHyperparameter(&run, "opt_name", "\"AdamW\"");
  SetHyperparameter(&run, "opt_betas", "[0.8, 0.99]");
  SetHyperparameter(&run, "scheduler_type", "\"cosine_annealing\"");
  SetHyperparameter(&run, "scheduler_t_max", "90");
  SetHyperparameter(&run, "gradient_accumulation_frequency", "3");

  const absl::StatusOr<TrainerSpec> spec = MakeTrainerSpec(run);

  ASSERT_THAT(spec, IsOk());
  const std::unique_ptr<const Workload> workload = *MakeWorkload(*spec);
  ModelSpec model;
  workload->Describe(&model);
  EXPECT_EQ(model.options.optimizer.kind, OptimizerOptions::Kind::kAdamW);
  EXPECT_EQ(model.options.optimizer.beta2, 0.99);
  EXPECT_EQ(model.options.accumulation, 3);
  EXPECT_EQ(model.deepcam.width, 48);
  EXPECT_NEAR(workload->LearningRate(0, 2 + 90), 0, 1e-12) << "after warm-up and the whole cosine";
}

TEST(DeepcamSpecTest, RefusesBadValuesNamingTheField) {
  const struct {
    const char* key;
    const char* json;
    const char* message;
  } rows[] = {{"opt_name", "\"sgd\"", "opt_name: want Adam, AdamW or LAMB"},
              {"opt_betas", "[0.9]", "opt_betas"},
              {"scheduler_type", "\"poly\"", "scheduler_type"},
              {"batchnorm_group_size", "2", "batchnorm_group_size: want a divisor of the 1 ranks"},
              {"gradient_accumulation_frequency", "0", "gradient_accumulation_frequency"},
              {"map_height", "50", "map_height"}};
  for (const auto& row : rows) {
    v1::RunSpec run = DeepcamRun();
    SetHyperparameter(&run, row.key, row.json);
    EXPECT_THAT(MakeTrainerSpec(run),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(row.message)));
  }
  v1::RunSpec closed = DeepcamRun();
  closed.set_round("hpc-3.0.0");
  closed.set_division("closed");
  EXPECT_THAT(MakeTrainerSpec(closed),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("768, 1152, 32, 16")));
}

}  // namespace
}  // namespace assay
