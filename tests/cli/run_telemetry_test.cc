// `assay run show --telemetry` and `assay run telemetry`: what nodes were measured to do.

#include "cli/run/run_telemetry.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "cli/run/run_figure.h"
#include "common/file.h"
#include "tests/cli/fake_coordinator.h"
#include "tests/cli/invocation.h"
#include "tests/support/clock_files.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay {
namespace {

using cli::ExitStatus;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::Not;
using testing::StatusIs;

class RunTelemetryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    coordinator_.Start();
    run_.env.variables["ASSAY_SOCKET"] = coordinator_.socket_path();
  }
  // A node with two processors, measured each second from five seconds before the run to its end:
  // it is idle before, and then one processor is busy, a tenth of that by others.
  std::string NodeOf(const v1::Run& run, int64_t wall_ahead_s = 0) {
    constexpr int64_t kSecond = 1'000'000'000;
    constexpr int64_t kNodeNs = 9 * kSecond;
    const telemetry::Header header{
        .boot_id = "boot",
        .wall_us = (run.run_start_ms() - 5000) * 1000 + wall_ahead_s * 1'000'000,
        .node_ns = kNodeNs,
        .columns = {{"cpu.user", "ms", true},
                    {"cpu.idle", "ms", true},
                    {"run.cpu", "ms", true},
                    {"paging.swapped_in", "pages", true}}};
    const std::string path = dir_.Path("telemetry.bin");
    absl::StatusOr<telemetry::SeriesWriter> writer = telemetry::SeriesWriter::Create(path, header);
    EXPECT_THAT(writer, IsOk());
    for (int64_t second = 0; second <= 10; ++second) {
      const int64_t busy_ms = second <= 5 ? 0 : (second - 5) * 1000;
      const std::vector<int64_t> values = {busy_ms, second * 2000 - busy_ms, busy_ms * 9 / 10, 0};
      EXPECT_THAT(writer->Append(kNodeNs + second * kSecond, values), IsOk());
    }
    EXPECT_THAT(writer->Flush(), IsOk());
    return *ReadFile(path);
  }

  const v1::Run& FirstRun() const {
    return *std::find_if(coordinator_.runs.begin(), coordinator_.runs.end(),
                         [](const v1::Run& run) { return run.name() == "runs/r-1"; });
  }

  testing::TempDir dir_;
  testing::FakeCoordinator coordinator_;
  testing::Invocation run_;
};

TEST_F(RunTelemetryTest, OnlyTheTimeOfTheRunCounts) {
  coordinator_.AddArtifact("telemetry_0.bin", NodeOf(FirstRun()));

  EXPECT_EQ(run_.Run("run show r-1 --telemetry -o table"), ExitStatus::kDone) << run_.err;

  EXPECT_THAT(run_.out, AllOf(ContainsRegex("0 +cpu.user +1000 +1000 +ms/s +5000"),
                              ContainsRegex("0 +cpu.idle +1000 +1000 +ms/s +5000"),
                              ContainsRegex("\n +0 +5.0 %"), HasSubstr("Who else used"),
                              Not(HasSubstr("swapped"))))
      << "people need no list of zeros";

  EXPECT_EQ(run_.Run("run show r-1 --telemetry --json=telemetry"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(run_.out, HasSubstr("swapped"));
}

TEST_F(RunTelemetryTest, OperatorsSeeWhoElseUsedMost) {
  constexpr int64_t kSecond = 1'000'000'000;
  coordinator_.AddArtifact("telemetry_0.bin", NodeOf(FirstRun()));
  // The run begins at 14 s by the node's clock.
  coordinator_.AddArtifact(
      "foreign_0.jsonl",
      telemetry::ForeignLine({4 * kSecond, 14 * kSecond, {{3, "before", 9000}}}) +
          telemetry::ForeignLine({14 * kSecond, 19 * kSecond, {{7, "backup", 600}, {8, "b", 1}}}));

  EXPECT_EQ(run_.Run("run show r-1 --telemetry -o table"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(run_.out, AllOf(HasSubstr("backup (7) 12 % of a CPU, b (8) 0 % of a CPU"),
                              Not(HasSubstr("before"))));

  EXPECT_EQ(run_.Run("run show r-1 --telemetry --json=quiet"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(run_.out, ContainsRegex("\"name\": ?\"backup\""));
}

TEST_F(RunTelemetryTest, EverySampleStandsAtItsSecondOfTheRun) {
  coordinator_.AddArtifact("telemetry_1.bin", NodeOf(FirstRun()));

  EXPECT_EQ(run_.Run("run telemetry r-1 --measure cpu.user -o csv"), ExitStatus::kDone) << run_.err;

  EXPECT_THAT(run_.out, AllOf(HasSubstr("\n1,-5.0,cpu.user,0,ms\n"),
                              HasSubstr("\n1,1.0,cpu.user,1000,ms\n"), Not(HasSubstr("cpu.idle"))));
}

// A wall clock that is 30 s wrong, or set by that: nodes are on the clock of the log by what they
// measured, and who has not is named.
TEST_F(RunTelemetryTest, NodesStandOnOneClockWhateverTheirWallClocksShow) {
  constexpr int64_t kSecond = 1'000'000'000;
  const v1::Run& run = FirstRun();
  coordinator_.AddArtifact("telemetry_0.bin", NodeOf(run, 30));
  coordinator_.AddArtifact("telemetry_1.bin", NodeOf(run, -30));
  coordinator_.AddArtifact("telemetry_2.bin", NodeOf(run, -30));
  coordinator_.AddArtifact("foreign_1.jsonl",
                           telemetry::ForeignLine({14 * kSecond, 19 * kSecond, {{7, "b", 600}}}));
  coordinator_.AddArtifact("arrivals.jsonl",
                           testing::StartArrivals(run.run_start_ms(), 14 * kSecond));
  coordinator_.AddArtifact("offsets.jsonl", testing::Offsets(14 * kSecond));
  coordinator_.AddArtifact("offsets_1.jsonl", testing::Offsets(14 * kSecond, 1 + 200e-6));

  EXPECT_EQ(run_.Run("run telemetry r-1 --measure cpu.user -o csv"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(run_.out, AllOf(HasSubstr("\n0,1.0,cpu.user,1000,ms\n"),
                              ContainsRegex("\n1,(1\\.0|0\\.999)[0-9]*,cpu.user,1000,ms\n"),
                              HasSubstr("\n2,-29.0,cpu.user,1000,ms\n")));
  EXPECT_THAT(run_.err, HasSubstr("1 by offsets, off node 0 by at most 2.8 ms (node 1); 1 by the "
                                  "wall clock, off by nobody knows what: node 2"));

  EXPECT_EQ(run_.Run("run show r-1 --telemetry -o table"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(run_.out, AllOf(ContainsRegex("clocks +1 by offsets"),
                              ContainsRegex("1 +cpu.user +1000 +1000 +ms/s +5000"),
                              HasSubstr("b (7) 12 % of a CPU")));
  EXPECT_EQ(run_.Run("run show r-1 --telemetry --json=telemetry_clocks"), ExitStatus::kDone);
  EXPECT_THAT(run_.out, AllOf(ContainsRegex("\"aligned_by\": ?\"offsets\""),
                              ContainsRegex("\"aligned_by\": ?\"wall clock\""),
                              ContainsRegex("\"error_seconds\": ?null")));
}

// Whoever controls a node may leave a file of any size: it is not even fetched.
TEST_F(RunTelemetryTest, AFileOfOffsetsThatNobodyWouldWriteIsNone) {
  constexpr int64_t kSecond = 1'000'000'000;
  coordinator_.AddArtifact("telemetry_1.bin", NodeOf(FirstRun()));
  coordinator_.AddArtifact("arrivals.jsonl",
                           testing::StartArrivals(FirstRun().run_start_ms(), 14 * kSecond));
  coordinator_.AddArtifact("offsets.jsonl", testing::Offsets(14 * kSecond));
  coordinator_.AddArtifact("offsets_1.jsonl", testing::Offsets(14 * kSecond));
  for (v1::Run& run : coordinator_.runs)
    run.mutable_artifacts()->rbegin()->set_size_bytes(int64_t{300} << 20);

  EXPECT_EQ(run_.Run("run telemetry r-1 --measure cpu.user -o csv"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(run_.out, HasSubstr("\n1,1.0,cpu.user,1000,ms\n")) << "by its wall clock";
  EXPECT_THAT(run_.err, HasSubstr("nobody knows what: node 1"));
}

// What gnuplot is told: the quality at its second, the loss by an axis of its own, an epoch's line,
// and a line for each node in what people call the unit.
TEST_F(RunTelemetryTest, ALossCurveStandsAboveWhatTheNodesDid) {
  const v1::Run& run = FirstRun();
  const auto line = [&run](const char* key, const char* value, int64_t second) {
    return absl::StrCat(R"(:::MLLOG {"namespace": "", "time_ms": )",
                        run.run_start_ms() + second * 1000,
                        R"(, "event_type": "POINT_IN_TIME", "key": ")", key, R"(", "value": )",
                        value, R"(, "metadata": {"epoch_num": 1}})", "\n");
  };
  const std::string log = line("run_start", "null", 0) + line("epoch_start", "null", 1) +
                          line("train_loss", "0.75", 3) + line("epoch_stop", "null", 3) +
                          line("eval_error", "0.5", 4);
  std::vector<cli::NodeTelemetry> nodes(2);
  nodes[0].series = *telemetry::ReadSeries(NodeOf(run));
  nodes[1] = nodes[0];
  nodes[1].node = 1;

  const absl::StatusOr<cli::Figure> figure = cli::RunFigure(run, log, nodes, "");

  ASSERT_THAT(figure, IsOk());
  EXPECT_THAT(figure->commands,
              AllOf(HasSubstr("\n4.000000 0.5\n"), HasSubstr("\n3.000000 0.75\n"),
                    ContainsRegex("axes x1y2 [^,]*title 'train_loss'"),
                    HasSubstr("set arrow from 1.000000,"), HasSubstr("set xrange [-5.0"),
                    HasSubstr("title 'node 1'"), HasSubstr("set label 1 'run.cpu'"),
                    HasSubstr("set ylabel 'processors'"), ContainsRegex("\n2\\.[0-9]+ 0\\.9\n"),
                    Not(HasSubstr("cpu.idle"))));
  EXPECT_THAT(cli::RunFigure(run, log, nodes, "cpu.")->commands,
              AllOf(HasSubstr("cpu.idle"), Not(HasSubstr("run.cpu"))));
  EXPECT_THAT(cli::RunFigure(run, log, nodes, "gpu"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("gpu")));
  nodes[0].series.header.columns.assign(20, {"x", "ms", true});
  for (size_t i = 0; i < 20; ++i)
    absl::StrAppend(&nodes[0].series.header.columns[i].name, i);
  nodes[0].series.columns.assign(20, std::vector<int64_t>(nodes[0].series.at_ns.size(), 5));
  EXPECT_THAT(cli::RunFigure(run, log, nodes, "x"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("20 measures")));
}

TEST_F(RunTelemetryTest, IsDrawnIntoAFile) {
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "no gnuplot; apt-get install gnuplot-nox";
  coordinator_.AddArtifact("telemetry_0.bin", NodeOf(FirstRun()));
  const std::string svg = dir_.Path("run.svg");
  EXPECT_EQ(run_.Run("run telemetry r-1 --plot " + svg), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(*ReadFile(svg), AllOf(HasSubstr("run.cpu"), HasSubstr("seconds from run_start")));
  EXPECT_EQ(run_.Run("run telemetry r-1 --plot run.gif"), ExitStatus::kUsage);
}

TEST_F(RunTelemetryTest, AFileThatIsCutSaysSoAndShowsWhatThereIs) {
  const std::string whole = NodeOf(FirstRun());
  coordinator_.AddArtifact("telemetry_0.bin", whole + "more");
  EXPECT_EQ(run_.Run("run telemetry r-1"), ExitStatus::kDone);
  EXPECT_THAT(run_.err, HasSubstr("node 0: the file is not whole: it ends within a frame"));
  EXPECT_THAT(run_.out, HasSubstr("cpu.idle"));
}

TEST_F(RunTelemetryTest, AFileOfSomethingElseIsAnError) {
  coordinator_.AddArtifact("telemetry_0.bin", "no telemetry");
  EXPECT_NE(run_.Run("run telemetry r-1"), ExitStatus::kDone);
  EXPECT_THAT(run_.err, HasSubstr("telemetry_0.bin of r-"));
}

TEST_F(RunTelemetryTest, ARunOfBeforeSaysSo) {
  EXPECT_EQ(run_.Run("run show r-1 --telemetry -o table"), ExitStatus::kDone);
  EXPECT_THAT(run_.err, HasSubstr("has no telemetry"));
  EXPECT_EQ(run_.Run("run telemetry r-1"), ExitStatus::kNotFound);
}

}  // namespace
}  // namespace assay
