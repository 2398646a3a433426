// `assay run show --bytes` and `assay analyze characterise`: what nodes read and used in which
// phase of a run.

#include "cli/run/run_bytes.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/telemetry/series.h"
#include "tests/cli/fake_coordinator.h"
#include "tests/cli/invocation.h"
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

class RunBytesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    coordinator_.Start();
    run_.env.variables["ASSAY_SOCKET"] = coordinator_.socket_path();
    run_.env.width = 160;
  }

  int64_t StartMs() const {
    return std::find_if(coordinator_.runs.begin(), coordinator_.runs.end(),
                        [](const v1::Run& run) { return run.name() == "runs/r-1"; })
        ->run_start_ms();
  }

  std::string Line(const std::string& key, int64_t second,
                   const std::string& value = "null") const {
    return absl::StrCat(":::MLLOG {\"namespace\": \"\", \"time_ms\": ", StartMs() + second * 1000,
                        ", \"event_type\": \"POINT_IN_TIME\", \"key\": \"", key,
                        "\", \"value\": ", value, ", \"metadata\": {}}\n");
  }

  // Two epochs of four seconds, with evaluation in the last second of each.
  void AddLog(const std::string& more = "") {
    for (v1::Run& run : coordinator_.runs)
      run.clear_artifacts();
    std::string log = more + Line("run_start", 0);
    for (const int64_t epoch : {0, 4})
      log += Line("epoch_start", epoch) + Line("eval_start", epoch + 3) +
             Line("eval_stop", epoch + 4) + Line("epoch_stop", epoch + 4);
    coordinator_.AddArtifact("result_1.txt", log + Line("run_stop", 8));
  }

  // A node of two processors that reads 25 MB a second in epoch 1 and nothing later, and whose run
  // keeps one processor busy.
  void AddNode(int node) {
    constexpr int64_t kSecondNs = 1'000'000'000;
    const telemetry::Header header{.boot_id = "boot",
                                   .wall_us = (StartMs() - 2000) * 1000,
                                   .node_ns = 0,
                                   .columns = {{"cpu.user", "ms", true},
                                               {"cpu.idle", "ms", true},
                                               {"disk.vda.read", "bytes", true},
                                               {"run.cpu", "ms", true},
                                               {"run.read", "bytes", true}}};
    const std::string path = dir_.Path("telemetry.bin");
    absl::StatusOr<telemetry::SeriesWriter> writer = telemetry::SeriesWriter::Create(path, header);
    ASSERT_THAT(writer, IsOk());
    for (int64_t second = 0; second <= 12; ++second) {
      const int64_t read = std::clamp<int64_t>(second - 2, 0, 4) * 25'000'000;
      const std::vector<int64_t> values = {second * 1000, second * 1000, read, second * 1000, read};
      ASSERT_THAT(writer->Append(second * kSecondNs, values), IsOk());
    }
    ASSERT_THAT(writer->Flush(), IsOk());
    coordinator_.AddArtifact(absl::StrCat("telemetry_", node, ".bin"), *ReadFile(path));
    coordinator_.AddArtifact(
        absl::StrCat("caches_", node, ".json"),
        R"({"coldness": "cold", "file_system": "ext4", "train_bytes": 200000000})");
  }

  testing::TempDir dir_;
  testing::FakeCoordinator coordinator_;
  testing::Invocation run_;
};

TEST_F(RunBytesTest, LaterEpochsFromMemoryAreEvidence) {
  AddLog();
  AddNode(0);
  AddNode(1);

  EXPECT_EQ(run_.Run("run show r-1 --bytes -o table"), ExitStatus::kDone) << run_.err;

  EXPECT_THAT(run_.out,
              AllOf(HasSubstr("all of 200 MB of training data from storage by the end of epoch 1"),
                    ContainsRegex("all +epoch 1 +4 +200 MB +100.0 % +200 MB"),
                    ContainsRegex("all +epoch 2 +4 +0 B +0.0 % +0 B"),
                    ContainsRegex("\n +1 +epoch 1 +4 +100 MB +100 MB")));

  EXPECT_EQ(run_.Run("run show r-1 --bytes --json=first_pass,bytes"), ExitStatus::kDone)
      << run_.err;
  EXPECT_THAT(run_.out, AllOf(HasSubstr("\"is_known\""), HasSubstr("\"storage_bytes\"")));
}

// As the verdict has it: a round may train on a part of what is registered.
TEST_F(RunBytesTest, NeededIsWhatTheLogTrainsOn) {
  AddLog(Line("train_samples", 0, "512"));  // of 2,048
  AddNode(0);
  AddNode(1);

  EXPECT_EQ(run_.Run("run show r-1 --bytes -o table"), ExitStatus::kDone) << run_.err;

  EXPECT_THAT(run_.out, HasSubstr("all of 50 MB of training data from storage"));
}

TEST_F(RunBytesTest, WhatIsNotKnownIsSaid) {
  AddLog();
  AddNode(0);  // of two

  EXPECT_EQ(run_.Run("run show r-1 --bytes -o table"), ExitStatus::kDone) << run_.err;

  EXPECT_THAT(run_.out, HasSubstr("not known: only 1 of 2 nodes left evidence"));
}

TEST_F(RunBytesTest, ARunOfBeforeSaysSo) {
  EXPECT_EQ(run_.Run("run show r-1 --bytes -o table"), ExitStatus::kDone);
  EXPECT_THAT(run_.err, HasSubstr("has no telemetry beside a log"));
  EXPECT_EQ(run_.Run("analyze characterise r-1"), ExitStatus::kNotFound);
}

TEST_F(RunBytesTest, PhasesStandBesideWhatTheNodesCanDo) {
  AddLog();
  AddNode(0);
  AddNode(1);
  coordinator_.AddArtifact("preflight_0.json", R"({"checks": [
      {"check": "dataset-disk", "is_measured": true, "value": 40, "unit": "MB/s"},
      {"check": "dataset-disk", "is_measured": false}, 7]})");
  coordinator_.AddArtifact("preflight_1.json", R"({"checks": [
      {"check": "dataset-disk", "is_measured": true, "value": 60, "unit": "MB/s"}]})");

  EXPECT_EQ(run_.Run("analyze characterise r-1 -o table"), ExitStatus::kDone) << run_.err;

  // Six seconds of training, of which three read.
  EXPECT_THAT(run_.out,
              AllOf(ContainsRegex(
                        "storage read +training +6 +12.5 +25 +MB/s +50 +(█)+(░)+ 25 % +pre-flight"),
                    ContainsRegex("storage read +evaluation +2 +12.5 +25"),
                    ContainsRegex("processors +training +6 +1 +1 +cores +2 +(█)+(░)+ 50 %"),
                    HasSubstr("██"), Not(HasSubstr("network"))));
  EXPECT_THAT(run_.err, HasSubstr("known of the native trainer alone"));

  EXPECT_EQ(run_.Run("analyze characterise r-1 -o csv"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(run_.out, HasSubstr("storage read,training,6.0,12.5,25.0,MB/s,50.0,0.25,0.5,"));
}

}  // namespace
}  // namespace assay
