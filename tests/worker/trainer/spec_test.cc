#include "worker/trainer/spec.h"

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/trainer/run_specs.h"
#include "worker/trainer/workload.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::SetHyperparameter;
using testing::SmallRun;
using testing::StatusIs;

// Of 0-based `epoch` and 1-based `step` of the optimizer.
double LearningRate(const v1::RunSpec& run, int epoch, int64_t step = 1) {
  const absl::StatusOr<TrainerSpec> spec = MakeTrainerSpec(run);
  EXPECT_THAT(spec, IsOk());
  return spec.ok() ? (*MakeWorkload(*spec))->LearningRate(epoch, step) : 0;
}

// The log states the peak and the factor; the engine wants base and scale. The table is the
// reference's own example: global batch 512, base 1e-3, four epochs of warm-up.
TEST(TrainerSpecTest, LoggedLearningRateIsThePeak) {
  v1::RunSpec run = SmallRun();
  run.clear_hyperparameters();
  SetHyperparameter(&run, "global_batch_size", "512");
  SetHyperparameter(&run, "opt_base_learning_rate", "0.008");
  SetHyperparameter(&run, "opt_learning_rate_warmup_factor", "8");
  SetHyperparameter(&run, "opt_learning_rate_warmup_epochs", "4");
  SetHyperparameter(&run, "opt_learning_rate_decay_boundary_epochs", "[32, 64]");
  SetHyperparameter(&run, "opt_learning_rate_decay_factor", "[0.25, 0.125]");

  EXPECT_DOUBLE_EQ(LearningRate(run, 0), 0.001);
  EXPECT_DOUBLE_EQ(LearningRate(run, 1), 0.00275);
  EXPECT_DOUBLE_EQ(LearningRate(run, 4), 0.008);
  EXPECT_DOUBLE_EQ(LearningRate(run, 32), 0.008);
  EXPECT_DOUBLE_EQ(LearningRate(run, 33), 0.002);
  EXPECT_DOUBLE_EQ(LearningRate(run, 65), 0.001);
}

TEST(TrainerSpecTest, ExtensionsAreOffUnlessAskedFor) {
  const absl::StatusOr<TrainerSpec> spec = MakeTrainerSpec(SmallRun());

  ASSERT_THAT(spec, IsOk());
  EXPECT_EQ(spec->eval_batch_size(), spec->local_batch_size);
  EXPECT_EQ(spec->extensions.augmentation, data::Augmentation::kNone);
  EXPECT_FALSE(spec->extensions.gradient_skip.IsOn(1000));
  EXPECT_EQ(LearningRate(SmallRun(), 170), LearningRate(SmallRun(), 0));
}

TEST(TrainerSpecTest, ExtensionsAreReadInTheOpenDivision) {
  v1::RunSpec run = SmallRun();
  SetHyperparameter(&run, "local_eval_batch_size", "16");
  SetHyperparameter(&run, "data_augmentation", "\"flips\"");
  SetHyperparameter(&run, "gradient_skip_layer", "\"conv3\"");
  SetHyperparameter(&run, "gradient_skip_after_epochs", "10");
  SetHyperparameter(&run, "opt_learning_rate_decay_epochs", "170");
  SetHyperparameter(&run, "opt_learning_rate_decay_end_factor", "0.02");

  const absl::StatusOr<TrainerSpec> spec = MakeTrainerSpec(run);

  ASSERT_THAT(spec, IsOk());
  EXPECT_EQ(spec->local_batch_size, 4);
  EXPECT_EQ(spec->eval_batch_size(), 16);
  EXPECT_EQ(spec->extensions.augmentation, data::Augmentation::kFlips);
  EXPECT_FALSE(spec->extensions.gradient_skip.IsOn(9));
  EXPECT_TRUE(spec->extensions.gradient_skip.IsOn(10));
  EXPECT_DOUBLE_EQ(LearningRate(run, 200), 0.02 * LearningRate(run, 0));
}

// A run of the closed division, but for what a test adds.
v1::RunSpec ClosedRun() {
  v1::RunSpec run = SmallRun();
  run.set_division("closed");
  testing::SetHyperparameter(&run, "base_filter_count", "32");
  return run;
}

TEST(TrainerSpecTest, GradientBucketsAreTheEnginesUnlessAskedFor) {
  v1::RunSpec run = ClosedRun();
  ASSERT_THAT(MakeTrainerSpec(run), IsOk());
  EXPECT_EQ(MakeTrainerSpec(run)->gradient_bucket_bytes(), kGradientBucketMib << 20);

  SetHyperparameter(&run, "gradient_bucket_mib", "25");
  ASSERT_THAT(MakeTrainerSpec(run), IsOk());
  EXPECT_EQ(MakeTrainerSpec(run)->gradient_bucket_bytes(), 25 << 20);

  SetHyperparameter(&run, "gradient_bucket_mib", "0");
  ASSERT_THAT(MakeTrainerSpec(run), IsOk());
  EXPECT_EQ(MakeTrainerSpec(run)->gradient_bucket_bytes(), 0);
}

TEST(TrainerSpecTest, DeepcamHasAPolynomialDecay) {
  v1::RunSpec run = SmallRun();
  run.set_benchmark("deepcam");
  SetHyperparameter(&run, "scheduler_type", "\"polynomial\"");
  SetHyperparameter(&run, "scheduler_t_max", "100");
  SetHyperparameter(&run, "scheduler_power", "2");

  EXPECT_DOUBLE_EQ(LearningRate(run, 0, 51), 0.00025);
}

TEST(TrainerSpecTest, TheClosedDivisionAllowsTheEvaluationBatchAndTheCacheOnly) {
  v1::RunSpec run = ClosedRun();
  SetHyperparameter(&run, "local_eval_batch_size", "16");
  SetHyperparameter(&run, "device_cache_mib", "4096");
  EXPECT_THAT(MakeTrainerSpec(run), IsOk());
  SetHyperparameter(&run, "data_augmentation", "\"none\"");
  EXPECT_THAT(MakeTrainerSpec(run), IsOk());

  const struct {
    const char* key;
    const char* value;
    const char* rule;
  } rows[] = {{"data_augmentation", "\"flips\"", "R-EXT-001"},
              {"gradient_skip_layer", "\"conv3\"", "R-EXT-002"},
              {"opt_learning_rate_decay_epochs", "170", "R-EXT-003"}};
  for (const auto& row : rows) {
    v1::RunSpec closed = ClosedRun();
    SetHyperparameter(&closed, row.key, row.value);
    EXPECT_THAT(MakeTrainerSpec(closed),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         ::testing::AllOf(HasSubstr(row.key), HasSubstr(row.rule),
                                          HasSubstr("or submit to the open division"))));
  }
}

TEST(TrainerSpecTest, OneDecayFactorAppliesAgainAtEachBoundary) {
  v1::RunSpec run = SmallRun();
  SetHyperparameter(&run, "opt_learning_rate_decay_boundary_epochs", "[1, 2, 3]");
  SetHyperparameter(&run, "opt_learning_rate_decay_factor", "0.5");

  EXPECT_DOUBLE_EQ(LearningRate(run, 2), 0.5 * LearningRate(run, 1));
  EXPECT_DOUBLE_EQ(LearningRate(run, 100), 0.125 * LearningRate(run, 0));
}

TEST(TrainerSpecTest, RanksShareTheGlobalBatch) {
  v1::RunSpec run = SmallRun();
  run.set_node_count(2);
  run.set_ranks_per_node(2);
  run.set_node_rank(1);
  run.set_local_rank(1);
  run.set_rendezvous_address("localhost:0");

  const absl::StatusOr<TrainerSpec> spec = MakeTrainerSpec(run);

  ASSERT_THAT(spec, IsOk());
  EXPECT_EQ(spec->rank, 3);
  EXPECT_EQ(spec->world_size, 4);
  EXPECT_EQ(spec->local_batch_size, 1);
}

// Two nodes of four ranks, samples divided 2x2: each node is a group, and each group a share of the
// batch.
TEST(TrainerSpecTest, GroupsThatShareSamplesShareTheGlobalBatch) {
  v1::RunSpec run = SmallRun();
  run.set_node_count(2);
  run.set_ranks_per_node(4);
  run.set_node_rank(1);
  run.set_local_rank(1);
  run.set_rendezvous_address("localhost:0");
  testing::SetCubeEdge(&run, "64");
  SetHyperparameter(&run, "spatial_grid", "[2, 2]");

  const absl::StatusOr<TrainerSpec> spec = MakeTrainerSpec(run);

  ASSERT_THAT(spec, IsOk());
  EXPECT_EQ(spec->rank, 5);
  EXPECT_EQ(spec->group(), 1);
  EXPECT_EQ(spec->group_count(), 2);
  EXPECT_EQ(spec->group_ranks_per_node(), 4);
  EXPECT_EQ(spec->local_batch_size, 2);
}

void DivideOverFourRanks(v1::RunSpec* run, const std::string& grid) {
  run->set_ranks_per_node(4);
  run->set_rendezvous_address("localhost:0");
  testing::SetCubeEdge(run, "64");
  SetHyperparameter(run, "spatial_grid", grid);
}

// HPC rules: the time of a closed run has no pause.
TEST(TrainerSpecTest, MayBeResumedInTheOpenDivisionOnly) {
  v1::RunSpec run = SmallRun();
  absl::StatusOr<TrainerSpec> open = MakeTrainerSpec(run);
  run.set_division("closed");
  testing::SetHyperparameter(&run, "base_filter_count", "32");
  absl::StatusOr<TrainerSpec> closed = MakeTrainerSpec(run);
  ASSERT_THAT(open, IsOk());
  ASSERT_THAT(closed, IsOk());

  EXPECT_THAT(Resume(&*open), IsOk());
  EXPECT_THAT(Resume(&*closed),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("has no pause")));
  EXPECT_TRUE(open->is_resumed);
  EXPECT_FALSE(closed->is_resumed);
}

struct BadCase {
  const char* name;
  std::function<void(v1::RunSpec*)> damage;
  const char* message;
};

class BadSpecTest : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadSpecTest, IsRefusedNamingTheField) {
  v1::RunSpec run = SmallRun();
  GetParam().damage(&run);

  EXPECT_THAT(MakeTrainerSpec(run),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    Fields, BadSpecTest,
    ::testing::Values(
        BadCase{"Benchmark", [](v1::RunSpec* r) { r->set_benchmark("chess"); }, "benchmark"},
        BadCase{
            "Batch", [](v1::RunSpec* r) { SetHyperparameter(r, "global_batch_size", "0"); },
            "global_batch_size: expected a positive multiple of the number of ranks, or of groups "
            "that share samples, found 0 for 1 ranks (R-RNK-006)"},
        BadCase{"Optimizer", [](v1::RunSpec* r) { SetHyperparameter(r, "opt_name", "\"adamw\""); },
                "opt_name: this trainer has sgd, not adamw"},
        BadCase{"Type", [](v1::RunSpec* r) { SetHyperparameter(r, "dropout", "\"half\""); },
                "dropout: want a number, found \"half\""},
        BadCase{"Json", [](v1::RunSpec* r) { SetHyperparameter(r, "dropout", "{"); },
                "dropout: not JSON"},
        BadCase{"Cube", [](v1::RunSpec* r) { testing::SetCubeEdge(r, "16"); }, "16"},
        BadCase{"ClosedModel", [](v1::RunSpec* r) { r->set_division("closed"); },
                "base_filter_count: the closed division has 32, found 2"},
        BadCase{"Rank", [](v1::RunSpec* r) { r->set_node_rank(1); }, "rank 1 of 1 ranks"},
        BadCase{"Rendezvous", [](v1::RunSpec* r) { r->set_node_count(2); }, "rendezvous_address"},
        BadCase{"Checkpoints",
                [](v1::RunSpec* r) { SetHyperparameter(r, "checkpoint_interval_steps", "-1"); },
                "checkpoint_interval_steps: want 0"},
        BadCase{"Buckets",
                [](v1::RunSpec* r) { SetHyperparameter(r, "gradient_bucket_mib", "-1"); },
                "gradient_bucket_mib: expected a whole number from 0 to 4096 (MiB), found -1 "
                "(R-RNK-007)"},
        BadCase{"EvalBatch",
                [](v1::RunSpec* r) { SetHyperparameter(r, "local_eval_batch_size", "-1"); },
                "local_eval_batch_size: want 0"},
        BadCase{"DeviceCache",
                [](v1::RunSpec* r) { SetHyperparameter(r, "device_cache_mib", "-1"); },
                "device_cache_mib: expected a whole number from 0 to 16777216 (MiB), found -1 "
                "(R-RNK-008)"},
        BadCase{"MemoryLimit",
                [](v1::RunSpec* r) { SetHyperparameter(r, "memory_limit_mib", "0.5"); },
                "memory_limit_mib: expected a whole number from 0 to 16777216 (MiB), found 0.5 "
                "(R-RNK-011)"},
        BadCase{"AugmentedCache",
                [](v1::RunSpec* r) {
                  SetHyperparameter(r, "device_cache_mib", "100");
                  SetHyperparameter(r, "data_augmentation", "\"flips\"");
                },
                "device_cache_mib: augmented samples differ in every epoch"},
        BadCase{"Augmentation",
                [](v1::RunSpec* r) { SetHyperparameter(r, "data_augmentation", "\"mirror\""); },
                "data_augmentation: want none, flips or flips_and_permutations"},
        BadCase{"AugmentedMaps",
                [](v1::RunSpec* r) {
                  r->set_benchmark("deepcam");
                  SetHyperparameter(r, "data_augmentation", "\"flips\"");
                },
                "data_augmentation: deepcam's maps are not turned"},
        BadCase{"SkipWithoutLayer",
                [](v1::RunSpec* r) { SetHyperparameter(r, "gradient_skip_after_epochs", "3"); },
                "gradient_skip_after_epochs: say with gradient_skip_layer"},
        BadCase{"SkipFromTheStart",
                [](v1::RunSpec* r) { SetHyperparameter(r, "gradient_skip_layer", "\"conv1\""); },
                "gradient_skip_after_epochs: want the number of epochs"},
        BadCase{"FadeAndBoundaries",
                [](v1::RunSpec* r) {
                  SetHyperparameter(r, "opt_learning_rate_decay_boundary_epochs", "[1]");
                  SetHyperparameter(r, "opt_learning_rate_decay_factor", "0.5");
                  SetHyperparameter(r, "opt_learning_rate_decay_epochs", "10");
                },
                "choose one of them"},
        BadCase{"GridType", [](v1::RunSpec* r) { DivideOverFourRanks(r, "[2, 0.5]"); },
                "spatial_grid: expected two whole numbers"},
        BadCase{"GridRanks", [](v1::RunSpec* r) { DivideOverFourRanks(r, "[3, 1]"); },
                "multiple of the group's, found [3, 1], groups of 3 for 4 ranks (R-RNK-004)"},
        BadCase{"GridEdge", [](v1::RunSpec* r) { DivideOverFourRanks(r, "[4, 1]"); },
                "multiples of 32 voxels, found [4, 1] of cubes of 64 (R-RNK-003); of an edge of 64 "
                "voxels make 1 or 2 parts"},
        BadCase{"GridNodes",
                [](v1::RunSpec* r) {
                  DivideOverFourRanks(r, "[2, 1]");
                  r->set_ranks_per_node(3);
                  r->set_node_count(2);
                },
                "groups of 2 ranks on nodes of 3 (R-RNK-005)"},
        BadCase{"Factors",
                [](v1::RunSpec* r) {
                  SetHyperparameter(r, "opt_learning_rate_decay_boundary_epochs", "[1, 2, 3]");
                  SetHyperparameter(r, "opt_learning_rate_decay_factor", "[0.5, 0.25]");
                },
                "want one number or 3"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(TrainerSpecTest, ASyntaxErrorIsPlaced) {
  const testing::TempDir dir;
  ASSERT_THAT(WriteFileAtomic(dir.Path("spec"), "run: \"runs/r-1\"\nsede: 3\n"), IsOk());

  EXPECT_THAT(LoadTrainerSpec(dir.Path("spec")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("spec:2:")));
}

}  // namespace
}  // namespace assay
