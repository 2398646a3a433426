// Several ranks of one run as processes, talking over UCX: the program assay-train itself.

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

#include "common/dataset/cosmo_dataset.h"
#include "common/dataset/pack.h"
#include "common/exit_code.h"
#include "common/file.h"
#include "common/process.h"
#include "common/sha256.h"
#include "tests/support/held_port.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/trainer/run_specs.h"

namespace assay {
namespace {

using ::testing::DoubleNear;
using testing::EvalErrors;
using testing::IsOk;
using testing::IsOkAndHolds;
using ::testing::Pointwise;
using testing::SetHyperparameter;
using testing::TempDir;

// Far more than a run takes; only a hang gets there.
constexpr absl::Duration kPatience = absl::Minutes(4);

class RanksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dataset::CosmoDatasetSpec spec;
    spec.parameters.mode = dataset::CosmoMode::kBeacon;
    spec.train_samples = kTrainSamples;
    spec.validation_samples = kEvalSamples;
    ASSERT_THAT(dataset::GenerateCosmoDataset(dir_.Path("data"), spec, /*threads=*/2), IsOk());
  }

  v1::RunSpec Run(int world_size) {
    v1::RunSpec run = testing::SmallRun();
    run.set_node_count(world_size);
    run.set_rendezvous_token("secret of this test");
    run.set_log_path(dir_.Path(absl::StrCat("result_", world_size, ".txt")));
    run.mutable_dataset()->set_path(dir_.Path("data"));
    run.mutable_dataset()->set_train_sample_count(kTrainSamples);
    run.mutable_dataset()->set_eval_sample_count(kEvalSamples);
    SetHyperparameter(&run, "dropout", "0.0");
    return run;
  }

  absl::StatusOr<ProcessId> Start(v1::RunSpec run, int rank, bool is_resumed = false) {
    run.set_node_rank(rank);
    run.set_stage_directory(dir_.Path(absl::StrCat("stage_", rank)));
    const std::string path = dir_.Path(absl::StrCat("spec_", run.node_count(), "_", rank));
    std::string text;
    google::protobuf::TextFormat::PrintToString(run, &text);
    const absl::Status written = WriteFileAtomic(path, text);
    if (!written.ok()) return written;
    const char* bin = std::getenv("ASSAY_BIN_DIR");
    std::vector<std::string> argv = {
        absl::StrCat(bin == nullptr ? "build/dev/bin" : bin, "/assay-train"), path};
    if (is_resumed) argv.insert(argv.begin() + 1, "--resume");
    return Spawn({.argv = argv,
                  .environment = {"OMP_NUM_THREADS=1", "UCX_LOG_LEVEL=error"},
                  .output_path = dir_.Path(absl::StrCat("out_", rank))});
  }

  std::vector<double> ErrorsOf(const v1::RunSpec& run) const {
    return EvalErrors(ReadFile(run.log_path()).value_or(""));
  }

  // Starts all ranks of `run`; each attempt listens elsewhere.
  std::vector<ProcessId> StartAll(v1::RunSpec run, bool is_resumed = false) {
    run.set_rendezvous_address(ports_.emplace_back().address());
    std::vector<ProcessId> ranks;
    for (int rank = 0; rank < run.node_count(); ++rank) {
      const absl::StatusOr<ProcessId> process = Start(run, rank, is_resumed);
      EXPECT_THAT(process, IsOk());
      if (process.ok()) ranks.push_back(*process);
    }
    return ranks;
  }

  // Runs all ranks of `run` to their good end.
  void Finish(const v1::RunSpec& run, bool is_resumed = false) {
    for (const ProcessId& rank : StartAll(run, is_resumed))
      ASSERT_THAT(WaitForExit(rank, kPatience), IsOkAndHolds(0))
          << ReadFile(dir_.Path("out_0")).value_or("");
  }

  // The line of a run's checkpoint that says where it is; empty before the first.
  static std::string PositionIn(const v1::RunSpec& run) {
    const std::string file =
        ReadFile(run.log_path() + ".checkpoint", int64_t{1} << 30).value_or("\n\n");
    const size_t begin = file.find('\n') + 1;
    return file.substr(begin, file.find(", \"sections\"", begin) - begin);
  }

  // Kills all ranks, with no warning, once they have saved another position than `last`; returns
  // it.
  std::string KillAfterNextCheckpoint(const v1::RunSpec& run, const std::vector<ProcessId>& ranks,
                                      const std::string& last) {
    const absl::Time deadline = absl::Now() + kPatience;
    std::string position = PositionIn(run);
    while ((position.empty() || position == last) && absl::Now() < deadline) {
      sched_yield();
      position = PositionIn(run);
    }
    for (const ProcessId& rank : ranks)
      EXPECT_EQ(kill(rank.pid, SIGKILL), 0);
    for (const ProcessId& rank : ranks)
      EXPECT_THAT(WaitForExit(rank, kPatience), IsOkAndHolds(128 + SIGKILL));
    return PositionIn(run);
  }

  // An epoch that the killed process had finished already may be in its log again.
  void ExpectSameBits(const v1::RunSpec& run, const v1::RunSpec& killed) {
    const std::vector<double> expected = ErrorsOf(run);
    const std::vector<double> found = ErrorsOf(killed);
    EXPECT_EQ(static_cast<int>(expected.size()), run.epoch_count_max());
    EXPECT_THAT(found, ::testing::IsSupersetOf(expected));
    EXPECT_THAT(found, ::testing::Each(::testing::AnyOfArray(expected)));
    const std::string weights =
        ReadFile(run.log_path() + ".checkpoint", int64_t{1} << 30).value_or("");
    EXPECT_FALSE(weights.empty());
    EXPECT_EQ(Sha256Hex(ReadFile(killed.log_path() + ".checkpoint", int64_t{1} << 30).value_or("")),
              Sha256Hex(weights));
  }

  std::deque<testing::HeldPort> ports_;
  static constexpr int kTrainSamples = 48;
  static constexpr int kEvalSamples = 16;
  TempDir dir_;
};

// Without dropout the mean gradient of four samples is the same however they are dealt out, and
// samples are turned alike whichever rank reads them; only the order of float additions differs.
TEST_F(RanksTest, TwoRanksLearnWhatOneRankLearns) {
  std::vector<double> one, two;
  for (const int world_size : {1, 2}) {
    v1::RunSpec run = Run(world_size);
    run.set_progress_path(dir_.Path(absl::StrCat("progress_", world_size)));
    SetHyperparameter(&run, "data_augmentation", "\"flips_and_permutations\"");
    Finish(run);
    (world_size == 1 ? one : two) = ErrorsOf(run);
  }

  constexpr double kTolerance = 2e-3;  // float rounding, amplified by 24 steps
  EXPECT_EQ(one.size(), 2U);
  EXPECT_THAT(two, Pointwise(DoubleNear(kTolerance), one));
  // Of two ranks each sends as much as it has: 24 gradients of 31,378 parameters, the sum of this
  // model's layers; and rank 0 alone its parameters once.
  constexpr int kBytes = 4 * 31'378;
  EXPECT_THAT(ReadFile(dir_.Path("progress_2")).value_or(""),
              ::testing::HasSubstr(
                  absl::StrCat(R"("size": "up to 128 KiB", "operations": 25, "bytes": )",
                               2 * 25 * kBytes, R"(, "sent_bytes": )", (2 * 24 + 1) * kBytes)));
}

// Four nodes of one rank that share each sample, each with a staged copy of its own, against one
// process that has samples whole.
TEST_F(RanksTest, FourRanksThatShareSamplesLearnWhatOneRankLearns) {
  dataset::CosmoDatasetSpec cubes;
  cubes.parameters.mode = dataset::CosmoMode::kBeacon;
  cubes.parameters.edge = 64;
  cubes.train_samples = 8;
  cubes.validation_samples = 4;
  ASSERT_THAT(dataset::GenerateCosmoDataset(dir_.Path("cubes"), cubes, /*threads=*/2), IsOk());
  // As files, which node i reads every fourth of, and as archives, which are dealt to them.
  ASSERT_THAT(dataset::PackDataset(dir_.Path("cubes"), dir_.Path("packed"), {.parts = 4}), IsOk());
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(dir_.Path("cubes/train"));
  ASSERT_THAT(names, IsOk());
  const int64_t bytes = FileSize(JoinPath(dir_.Path("cubes/train"), names->front())).value_or(-1);
  std::vector<double> one;
  for (const char* form : {"", "cubes", "packed"}) {
    SCOPED_TRACE(form);
    const int world_size = *form == '\0' ? 1 : 4;
    v1::RunSpec run = Run(world_size);
    run.set_log_path(dir_.Path(absl::StrCat("result_", form)));
    testing::SetCubeEdge(&run, "64");
    run.mutable_dataset()->set_path(dir_.Path(world_size == 1 ? "cubes" : form));
    run.mutable_dataset()->set_train_sample_count(8);
    run.mutable_dataset()->set_eval_sample_count(4);
    run.mutable_dataset()->set_is_staged(world_size == 4);
    run.set_is_staging_timed(true);
    if (world_size == 4) SetHyperparameter(&run, "spatial_grid", "[2, 2]");
    Finish(run);
    if (world_size == 1) {
      one = ErrorsOf(run);
      EXPECT_EQ(one.size(), 2U);
      continue;
    }
    constexpr double kTolerance = 1e-5;  // float rounding, amplified by 4 steps
    EXPECT_THAT(ErrorsOf(run), Pointwise(DoubleNear(kTolerance), one));
    EXPECT_THAT(ReadFile(run.log_path()).value_or(""),
                ::testing::HasSubstr("\"key\": \"spatial_grid\", \"value\": [2, 2]"));
    // Each node has read a quarter of the 12 files, and has them all.
    for (int rank = 0; rank < 4; ++rank)
      EXPECT_THAT(ReadFile(dir_.Path(absl::StrCat("out_", rank))).value_or(""),
                  ::testing::HasSubstr(absl::StrCat("staged files=12 bytes=", 12 * bytes,
                                                    " peer_bytes=", 9 * bytes, " ")));
  }
}

// Killed with no warning and resumed, three times: the same errors and the same weights, to the
// last bit, as a run that nobody disturbed. With dropout, so random numbers must go on too. Every 5
// steps is in the middle of an epoch (of 12), every 12 between epochs. Samples are turned, and in
// the first case layers are frozen on the way.
TEST_F(RanksTest, AKilledRunResumesToTheSameBits) {
  for (const char* interval : {"5", "12"}) {
    SCOPED_TRACE(interval);
    v1::RunSpec run = Run(2);
    run.set_log_path(dir_.Path(absl::StrCat("undisturbed_", interval)));
    run.set_epoch_count_max(8);
    run.set_quality_target(1e-9);
    SetHyperparameter(&run, "dropout", "0.5");
    SetHyperparameter(&run, "checkpoint_interval_steps", interval);
    SetHyperparameter(&run, "data_augmentation", "\"flips_and_permutations\"");
    if (interval == absl::string_view("5")) {
      SetHyperparameter(&run, "gradient_skip_layer", "\"conv2\"");
      SetHyperparameter(&run, "gradient_skip_after_epochs", "2");
    }
    Finish(run);
    v1::RunSpec killed = run;
    killed.set_log_path(dir_.Path(absl::StrCat("killed_", interval)));

    std::set<std::string> positions = {""};
    std::string last;
    for (int attempt = 0; attempt < 3; ++attempt) {
      last = KillAfterNextCheckpoint(killed, StartAll(killed, /*is_resumed=*/true), last);
      EXPECT_TRUE(positions.insert(last).second) << "not further than " << last;
    }
    Finish(killed, /*is_resumed=*/true);

    ExpectSameBits(run, killed);
    const std::string log = ReadFile(killed.log_path()).value_or("");
    EXPECT_THAT(log, ::testing::HasSubstr("\"key\": \"resumed\""));
    EXPECT_EQ(log.find("\"run_start\""), log.rfind("\"run_start\"")) << "one start, one clock";
  }
}

// One rank takes steps of another length, which no log and no quality would show.
TEST_F(RanksTest, RanksWhoseParametersDifferEndTheRun) {
  v1::RunSpec run = Run(2);
  run.set_rendezvous_address(ports_.emplace_back().address());
  const absl::StatusOr<ProcessId> zero = Start(run, 0);
  SetHyperparameter(&run, "opt_base_learning_rate", "0.123");
  const absl::StatusOr<ProcessId> one = Start(run, 1);
  ASSERT_THAT(zero, IsOk());
  ASSERT_THAT(one, IsOk());

  const int diverged = static_cast<int>(ExitCode::kDiverged);
  EXPECT_THAT(WaitForExit(*zero, kPatience), IsOkAndHolds(diverged));
  EXPECT_THAT(WaitForExit(*one, kPatience), IsOkAndHolds(diverged));
  EXPECT_THAT(ReadFile(dir_.Path("out_0")).value_or(""),
              ::testing::HasSubstr("parameters after epoch 1: rank 1 has others than rank 0"));
  EXPECT_THAT(ReadFile(run.log_path()).value_or(""),
              ::testing::HasSubstr("\"status\": \"aborted\""));
}

// A rank that dies takes the others with it, soon and with the documented code.
TEST_F(RanksTest, WhenOneRankIsKilledTheOthersEndWithCommLost) {
  v1::RunSpec run = Run(3);
  run.set_epoch_count_max(1000);
  run.set_quality_target(1e-9);
  SetHyperparameter(&run, "global_batch_size", "6");
  run.mutable_dataset()->set_eval_sample_count(12);
  const std::vector<ProcessId> ranks = StartAll(run);
  ASSERT_EQ(ranks.size(), 3U);
  const absl::Time deadline = absl::Now() + kPatience;
  while (ErrorsOf(run).empty() && absl::Now() < deadline)
    sched_yield();
  ASSERT_FALSE(ErrorsOf(run).empty()) << ReadFile(dir_.Path("out_0")).value_or("");

  ASSERT_EQ(kill(ranks[1].pid, SIGKILL), 0);

  const int lost = static_cast<int>(ExitCode::kCommLost);
  EXPECT_THAT(WaitForExit(ranks[0], absl::Seconds(30)), IsOkAndHolds(lost));
  EXPECT_THAT(WaitForExit(ranks[2], absl::Seconds(30)), IsOkAndHolds(lost));
  EXPECT_THAT(WaitForExit(ranks[1], kPatience), IsOkAndHolds(128 + SIGKILL));
  EXPECT_THAT(ReadFile(run.log_path()).value_or(""),
              ::testing::HasSubstr("\"status\": \"aborted\""));
}

}  // namespace
}  // namespace assay
