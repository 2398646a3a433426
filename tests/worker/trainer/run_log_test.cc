#include "worker/trainer/run_log.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/json_reader.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/trainer/run_specs.h"
#include "worker/trainer/workload.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using testing::FakeClock;
using testing::IsOk;
using testing::SmallRun;
using testing::TempDir;

class RunLogTest : public ::testing::Test {
 protected:
  absl::StatusOr<TrainerSpec> Spec(int node_rank = 0) {
    v1::RunSpec run = SmallRun();
    run.set_log_path(dir_.Path("result_1.txt"));
    run.set_node_count(2);
    run.set_node_rank(node_rank);
    run.set_rendezvous_address("localhost:0");
    return MakeTrainerSpec(run);
  }

  // "key" or "key=value" of each record.
  std::vector<std::string> Records() {
    std::vector<std::string> records;
    const std::string text = ReadFile(dir_.Path("result_1.txt")).value_or("");
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      const MllogLine read = ReadMllogLine(line);
      EXPECT_EQ(read.outcome, MllogOutcome::kRecord) << line;
      std::string storage;
      std::string record(MllogKey(read, &storage));
      if (read.value_json != "null") record += "=" + std::string(read.value_json);
      records.push_back(record);
    }
    return records;
  }

  TempDir dir_;
  FakeClock clock_;
};

// What the loop writes in one epoch, by the workload of the spec.
void WriteWholeRun(const TrainerSpec& spec, RunLog* log) {
  const absl::StatusOr<std::unique_ptr<const Workload>> workload = MakeWorkload(spec);
  ASSERT_THAT(workload, IsOk());
  const EpochResult epoch = {.quality = 0.25};
  (*workload)->LogInit(log);
  log->InitStop();
  log->RunStart();
  (*workload)->LogStart(log);
  log->StagingStart(0);
  log->StagingStop();
  (*workload)->LogSettings(log);
  (*workload)->LogEpochStart(log, epoch);
  (*workload)->LogTrained(log, epoch);
  log->EvalStart(0);
  (*workload)->LogEpochEnd(log, epoch);
  log->RunStop("success");
}

// The order of the reference implementation, key by key (specification, section 8).
TEST_F(RunLogTest, FollowsTheReferenceOrder) {
  const absl::StatusOr<TrainerSpec> spec = Spec();
  ASSERT_THAT(spec, IsOk());
  auto log = RunLog::Open(*spec, &clock_);
  ASSERT_THAT(log, IsOk());

  WriteWholeRun(*spec, log->get());

  EXPECT_THAT((*log)->status(), IsOk());
  EXPECT_THAT(
      Records(),
      ElementsAre("init_start", "seed=7", "number_of_ranks=2", "number_of_nodes=2",
                  "accelerators_per_node=0", "submission_benchmark=\"cosmoflow\"",
                  "submission_org=\"Facility\"", "submission_division=\"open\"",
                  "submission_status=\"onprem\"", "submission_platform=\"testbed\"", "init_stop",
                  "run_start", "global_batch_size=4", "train_samples=16", "eval_samples=8",
                  "staging_start", "staging_stop", "opt_weight_decay=0.0", "dropout=0.5",
                  "opt_name=\"SGD\"", "opt_base_learning_rate=0.001",
                  "opt_learning_rate_warmup_epochs=0", "opt_learning_rate_warmup_factor=1.0",
                  "opt_learning_rate_decay_boundary_epochs=[]",
                  "opt_learning_rate_decay_factor=1.0", "epoch_start", "eval_start", "eval_stop",
                  "epoch_stop", "eval_error=0.25", "run_stop"));
}

TEST_F(RunLogTest, CountsAcceleratorsWhateverTheGpuBackendsPrecision) {
  for (const char* backend : {"cuda", "cuda-tf32", "cuda-bf16"}) {
    SCOPED_TRACE(backend);
    absl::StatusOr<TrainerSpec> spec = Spec();
    ASSERT_THAT(spec, IsOk());
    spec->run.mutable_trainer()->set_backend(backend);
    spec->run.set_log_path(dir_.Path(backend));
    auto log = RunLog::Open(*spec, &clock_);
    ASSERT_THAT(log, IsOk());

    WriteWholeRun(*spec, log->get());

    EXPECT_THAT(ReadFile(dir_.Path(backend)).value_or(""),
                ::testing::HasSubstr("\"key\": \"accelerators_per_node\", \"value\": 1,"));
    EXPECT_THAT(
        ReadFile(dir_.Path(backend)).value_or(""),
        ::testing::HasSubstr(absl::StrCat("\"key\": \"backend\", \"value\": \"", backend, "\",")));
  }
}

// Byte for byte what the reference's logger writes, with the clock's milliseconds truncated.
TEST_F(RunLogTest, EpochsAreNumberedFromOneAndStampedByTheMonotonicClock) {
  const absl::StatusOr<TrainerSpec> spec = Spec();
  ASSERT_THAT(spec, IsOk());
  auto log = RunLog::Open(*spec, &clock_);
  ASSERT_THAT(log, IsOk());

  clock_.Advance(absl::Microseconds(1999));
  clock_.StepWall(absl::Hours(1));
  (*log)->Event("eval_error", 0.5, (*log)->EpochNumber(0));

  const std::string text = ReadFile(dir_.Path("result_1.txt")).value_or("");
  const size_t metadata = text.find("\"metadata\"");
  EXPECT_EQ(text.substr(0, metadata),
            ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1704067200001, \"event_type\": "
            "\"POINT_IN_TIME\", \"key\": \"eval_error\", \"value\": 0.5, ");
  EXPECT_THAT(text.substr(metadata), ::testing::HasSubstr("\"epoch_num\": 1}"));
  EXPECT_EQ((*log)->ClockDrift(), absl::Hours(1));
}

// The decays as the reference logs them: boundaries in order, and the largest of the factors.
TEST_F(RunLogTest, DecaysAreLoggedAsTheReferenceDoes) {
  v1::RunSpec run = SmallRun();
  run.set_log_path(dir_.Path("result_1.txt"));
  testing::SetHyperparameter(&run, "opt_learning_rate_decay_boundary_epochs", "[64, 32]");
  testing::SetHyperparameter(&run, "opt_learning_rate_decay_factor", "[0.125, 0.25]");
  const absl::StatusOr<TrainerSpec> spec = MakeTrainerSpec(run);
  ASSERT_THAT(spec, IsOk());
  auto log = RunLog::Open(*spec, &clock_);
  ASSERT_THAT(log, IsOk());

  WriteWholeRun(*spec, log->get());

  EXPECT_THAT(Records(),
              ::testing::IsSupersetOf({"opt_learning_rate_decay_boundary_epochs=[32, 64]",
                                       "opt_learning_rate_decay_factor=0.25"}));
}

// A facility's round may vary the model, so its logs say which it was.
TEST_F(RunLogTest, AFacilityRoundLogsTheModel) {
  absl::StatusOr<TrainerSpec> spec = Spec();
  ASSERT_THAT(spec, IsOk());
  spec->run.set_round("cosmoflow-mini");
  auto log = RunLog::Open(*spec, &clock_);
  ASSERT_THAT(log, IsOk());

  WriteWholeRun(*spec, log->get());

  EXPECT_THAT(Records(),
              ::testing::IsSupersetOf({"cube_edge=32", "kernel_size=3", "base_filter_count=2"}));
}

TEST_F(RunLogTest, OtherRanksWriteNothing) {
  const absl::StatusOr<TrainerSpec> spec = Spec(/*node_rank=*/1);
  ASSERT_THAT(spec, IsOk());
  auto log = RunLog::Open(*spec, &clock_);
  ASSERT_THAT(log, IsOk());

  WriteWholeRun(*spec, log->get());

  EXPECT_THAT((*log)->status(), IsOk());
  EXPECT_FALSE(FileExists(dir_.Path("result_1.txt")));
}

}  // namespace
}  // namespace assay
