// Networks that fail: between a coordinator and its agents, and between the ranks of a run.

#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "common/file.h"
#include "common/sha256.h"
#include "tests/e2e/lan.h"
#include "tests/e2e/site.h"
#include "tests/support/await.h"
#include "tests/support/status_matchers.h"

namespace assay::testing {
namespace {

using ::testing::ContainsRegex;

constexpr char kAttach[] = R"(launcher { kind: "attach" })";
constexpr int kNodes = 2;

class NetworkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    bool is_of_kernel = false;
    if (const std::string obstacle = Lan::Obstacle(&is_of_kernel); !obstacle.empty()) {
      ASSERT_TRUE(is_of_kernel || std::getenv("CI") == nullptr) << obstacle;
      GTEST_SKIP() << obstacle;
    }
    lan_ = std::make_unique<Lan>(&site_, kNodes);
    coordinator_ = std::make_unique<Coordinator>(&site_, kAttach, lan_->host_address());
    for (int node = 0; node < kNodes; ++node)
      workers_.emplace_back(
          site_, absl::StrCat("n", node), coordinator_->address(),
          Worker::Place{.host = lan_->node_address(node), .prefix = lan_->OnNode(node)});
    ProvideBeacons(site_, "small", 128, 16);
  }
  void TearDown() override {
    for (const Worker& worker : workers_)
      if (HasFailure())
        ADD_FAILURE() << ReadFile(JoinPath(worker.data_directory(), "agent.log")).value_or("");
  }

  // An entry whose runs never reach the target.
  void SubmitEndless(int epochs) {
    SubmissionText text = {.epochs_max = epochs};
    text.base_learning_rate = "0.000001";
    const Outcome submitted = site_.Assay({"submit", WriteSubmission(site_, "endless.toml", text)});
    ASSERT_EQ(submitted.exit_code, 0) << submitted.Text();
    ASSERT_TRUE(Await([&] { return IsLogged(R"("epoch_num": 2})"); })) << "r-1 does not train";
  }
  // Whether the log of r-1 has these words on the node that writes it.
  bool IsLogged(const std::string& words) const {
    const std::string path = "data/runs/r-1-g1/result_1.txt";
    for (const Worker& worker : workers_) {
      const std::string log = ReadFile(JoinPath(worker.data_directory(), path)).value_or("");
      if (absl::StrContains(log, words)) return true;
    }
    return false;
  }
  std::string StateOf(const std::string& run) const {
    return site_.AssayJson({"run", "show", run}).value("state", "");
  }

  Site site_;
  std::unique_ptr<Lan> lan_;
  std::unique_ptr<Coordinator> coordinator_;
  std::deque<Worker> workers_;
};

// One node is cut off wholly; the other hears nothing, though it is heard. The run ends meanwhile.
TEST_F(NetworkTest, ARunThatEndsWhileItsNodesAreCutOffLosesNothing) {
  SubmitEndless(60);
  lan_->Lose(0, lan_->host_address());
  lan_->LoseSent(0, lan_->host_address());
  lan_->Lose(1, lan_->host_address());
  const absl::Time cut_at = absl::Now();
  ASSERT_TRUE(Await([&] {
    return IsLogged("run_stop") && absl::Now() > cut_at + absl::Seconds(30);
  })) << "training does not need the coordinator";
  EXPECT_EQ(StateOf("r-1"), "running") << "nobody knows better yet";

  for (int node = 0; node < kNodes; ++node)
    lan_->Mend(node);

  EXPECT_TRUE(Await([&] { return StateOf("r-1") == "succeeded"; }));
  const Json run = site_.AssayJson({"run", "show", "r-1"});
  EXPECT_EQ(run["epochs"], 60) << run;
  EXPECT_EQ(Sha256Hex(site_.Assay({"logs", "r-1"}).out), ResultArtifact(run)["sha256"]);
  EXPECT_EQ(ExpectNoGaps(site_, "r-1", 0), run["events"]);
  EXPECT_GT(ExpectNoGaps(site_, "r-1", 1), 0) << "the other node has witnessed a first touch too";
  EXPECT_TRUE(Await([&] { return StateOf("r-2") == "running"; })) << "the next run starts";
  EXPECT_EQ(site_.Assay({"cancel", "@last"}).exit_code, 0);
}

TEST_F(NetworkTest, ALossyAndNarrowLineToTheCoordinatorGivesTheSameVerdict) {
  lan_->Throttle(1000);
  for (int node = 0; node < kNodes; ++node) {
    lan_->Lose(node, lan_->host_address(), 10);
    lan_->LoseSent(node, lan_->host_address(), 10);
  }
  const Outcome submitted =
      site_.Assay({"submit", WriteSubmission(site_, "entry.toml", SubmissionText{})});
  ASSERT_EQ(submitted.exit_code, 0) << submitted.Text();
  const Outcome waited = site_.Assay({"wait", "@last", "--timeout", "10m"});
  EXPECT_EQ(waited.exit_code, 0) << waited.Text();
  const Json runs = site_.AssayJson({"entry", "show", "@last"})["run_details"];
  EXPECT_EQ(runs.size(), 3u) << "none was repeated";
  for (const Json& run : runs) {
    EXPECT_EQ(run["converged"], true) << run;
    EXPECT_EQ(Sha256Hex(site_.Assay({"logs", run["id"]}).out), ResultArtifact(run)["sha256"]);
  }
}

TEST_F(NetworkTest, ARunWhoseRanksAreCutOffFromEachOtherFailsAndNamesThem) {
  SubmitEndless(100'000);
  lan_->Lose(1, lan_->node_address(0));
  lan_->LoseSent(1, lan_->node_address(0));
  EXPECT_TRUE(Await([&] { return StateOf("r-1") == "failed"; }));
  EXPECT_THAT(site_.AssayJson({"run", "show", "r-1"})["state_reason"].get<std::string>(),
              ContainsRegex("lost contact with another rank \\(n.; the others on n.\\)"));
}

}  // namespace
}  // namespace assay::testing
