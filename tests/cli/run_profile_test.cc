// `assay run show --profile`: the last profile among a run's events, for people and for programs.

#include "cli/run/run_profile.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "tests/cli/fake_coordinator.h"
#include "tests/cli/invocation.h"

namespace assay {
namespace {

using cli::ExitStatus;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class RunProfileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    coordinator_.Start();
    run_.env.variables["ASSAY_SOCKET"] = coordinator_.socket_path();
  }

  // Adds an event to those of every run.
  void Add(v1::RunEvent::Kind kind, const std::string& text) {
    v1::RunEvent& event = coordinator_.run_events.emplace_back();
    event.set_seq(static_cast<int64_t>(coordinator_.run_events.size()));
    event.set_kind(kind);
    event.set_text(text);
    for (v1::Run& run : coordinator_.runs)
      run.set_event_count(event.seq());
  }
  void AddProgress(const std::string& text) { Add(v1::RunEvent::PROGRESS, text); }
  void AddProfile(int epoch) {
    AddProgress(absl::StrCat(
        R"({"profile": {"epoch": )", epoch, R"(, "ranks": 2, "train_samples": )", 128 * epoch,
        R"(, "train_gflop_per_s": 152.31, "peak_gflop_per_s": 549.2, "peak_share": 0.27733, )",
        R"("read_bytes": 33554432, "memory_peak_bytes": 812000000, "staging": [{"node": 1, )",
        R"("bytes": 2000000000, "bytes_per_s": 450000000, "file_p99_s": 0.31, "retries": 2}], )",
        R"("collectives": [)",
        R"({"size": "above 16 MiB", "operations": 32, "bytes": 1223369728, "exposed_s": 0.82}]}})"));
  }

  testing::FakeCoordinator coordinator_;
  testing::Invocation run_;
};

TEST_F(RunProfileTest, TheLastProfileIsShownBesideTheRun) {
  AddProfile(1);
  AddProgress(R"({"phase": "training", "epoch": 2, "done": 1, "total": 4})");
  AddProfile(2);
  Add(v1::RunEvent::LOG_LINE, R"(:::MLLOG {"key": "run_stop"})");

  EXPECT_EQ(run_.Run("run show r-1 --profile -o table"), ExitStatus::kDone) << run_.err;

  EXPECT_THAT(
      run_.out,
      AllOf(ContainsRegex("samples trained +256\n"), ContainsRegex("training GFLOP/s +152.3\n"),
            ContainsRegex("share of the peak +0.2773\n"), ContainsRegex("read +34 MB\n"),
            ContainsRegex("\n *1 +2.0 GB +450 MB +0.31 +2\n"),
            ContainsRegex("above 16 MiB +32 +1.2 GB +0.82\n")));
}

TEST_F(RunProfileTest, JsonHasItAsOneMember) {
  AddProfile(3);

  EXPECT_EQ(run_.Run("run show r-1 --profile --json=id,profile"), ExitStatus::kDone) << run_.err;
  const nlohmann::json json = nlohmann::json::parse(run_.out);
  EXPECT_EQ(json["id"], "r-1");
  EXPECT_EQ(json["profile"]["train_samples"], 384);
  EXPECT_EQ(json["profile"]["collectives"][0]["operations"], 32);

  EXPECT_EQ(run_.Run("run show r-1 --json"), ExitStatus::kDone);
  EXPECT_THAT(run_.out, Not(HasSubstr("profile"))) << "only where it is asked for";
}

// From the end: of a long run only the last events are read, and more only if none is there.
TEST_F(RunProfileTest, ReadsNoMoreEventsThanItNeeds) {
  AddProfile(1);
  for (int i = 0; i < 1000; ++i)
    AddProgress(R"({"phase": "training"})");

  EXPECT_EQ(run_.Run("run show r-1 --profile"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(coordinator_.resumed_after, ElementsAre(745, 0));

  AddProfile(2);
  coordinator_.resumed_after.clear();
  EXPECT_EQ(run_.Run("run show r-1 --profile --jq .profile.epoch -o json"), ExitStatus::kDone);
  EXPECT_EQ(run_.out, "2\n");
  EXPECT_THAT(coordinator_.resumed_after, ElementsAre(746));
}

TEST_F(RunProfileTest, ARunWithoutOneSaysSo) {
  AddProgress(R"({"phase": "staging"})");

  EXPECT_EQ(run_.Run("run show r-1 --profile -o table"), ExitStatus::kDone);
  EXPECT_THAT(run_.err, HasSubstr("no profile yet"));
  EXPECT_THAT(run_.out, ContainsRegex("run +r-1\n"));
}

TEST_F(RunProfileTest, EventsShowItInOneLine) {
  AddProfile(2);

  EXPECT_EQ(run_.Run("run events r-1 -o table"), ExitStatus::kDone);
  EXPECT_THAT(run_.out, HasSubstr("profile epoch 2  152.3 GFLOP/s  28% of the peak\n"));
}

}  // namespace
}  // namespace assay
