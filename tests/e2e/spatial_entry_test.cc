// What only the installed programs show together: entries whose ranks share each sample, over two
// nodes and on one, and an entry in bfloat16. Cubes of 64, one epoch; any network reaches the
// target.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "tests/e2e/site.h"
#include "tests/support/write_file.h"

namespace assay::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// Of these rounds the first stages before the clock, the second on it.
constexpr char kRound[] = "e2e-spatial";
constexpr char kTimedRound[] = "e2e-spatial-timed";

std::string RoundText(const std::string& name, const std::string& base) {
  return absl::StrCat("[round]\nname = \"", name, "\"\nbase = \"", base, "\"\n", R"(
label = "Round of the end-to-end tests: not an MLPerf result"

[benchmark]
name = "cosmoflow"
runs = 3
target = 100

[[rule]]
id = "R-FAC-901"
key = "base_filter_count"
equals = 2
hyperparameter = true
section = "e2e, Model"
remedy = "keep the 2 filters of the first convolution"
)");
}

struct Ranks {
  int nodes = 1;
  int per_node = 1;
  std::string backend = "onednn";
  std::string grid;  // empty: none
  std::string round = kRound;
  std::string dataset = "cubes64";
};

std::string Submission(const Ranks& ranks) {
  const std::string grid =
      ranks.grid.empty() ? "" : absl::StrCat("spatial_grid = ", ranks.grid, "\n");
  return absl::StrCat("round = \"", ranks.round, R"("
benchmark = "cosmoflow"
division = "closed"
organization = "Example"
system = "this-host"
dataset = ")",
                      ranks.dataset, R"("
epochs_max = 1
status = "research"
nodes = )",
                      ranks.nodes, "\nranks_per_node = ", ranks.per_node, "\nbackend = \"",
                      ranks.backend, R"("

[hyperparameters]
global_batch_size = 2
opt_name = "sgd"
opt_base_learning_rate = 0.001
opt_learning_rate_warmup_epochs = 0
opt_learning_rate_warmup_factor = 1
opt_learning_rate_decay_boundary_epochs = [8]
opt_learning_rate_decay_factor = [0.25]
dropout = 0.0
opt_weight_decay = 0.0
base_filter_count = 2
)",
                      grid);
}

class SpatialEntryTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    site_ = new Site;
    WriteFile(site_->Path("share/assay/rounds/e2e-spatial.toml"), RoundText(kRound, "hpc-3.0.0"));
    WriteFile(site_->Path("share/assay/rounds/e2e-spatial-timed.toml"),
              RoundText(kTimedRound, "hpc-2.0.0"));
    coordinator_ = new Coordinator(site_);
    const std::string folder = site_->Path("datasets/cubes64");
    const Outcome made = site_->Assay(
        {"dataset", "generate", folder, "--edge", "64", "--train", "4", "--eval", "2"});
    ASSERT_EQ(made.exit_code, 0) << made.Text();
    const std::string packed = site_->Path("datasets/packed");
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"dataset", "pack", folder, packed, "--shard-mib", "2"},
          {"dataset", "add", "cubes64", folder},
          {"dataset", "add", "packed", packed}}) {
      const Outcome outcome = site_->Assay(command);
      ASSERT_EQ(outcome.exit_code, 0) << outcome.Text();
    }
  }
  static void TearDownTestSuite() {
    delete coordinator_;
    delete site_;
  }

  // The log of a run of an entry that gets its score.
  static std::string LogOfScored(const Ranks& ranks) {
    WriteFile(site_->Path("entry.toml"), Submission(ranks));
    const Outcome submitted = site_->Assay({"submit", site_->Path("entry.toml"), "--wait"});
    EXPECT_EQ(submitted.exit_code, 0) << submitted.Text();
    const Json score = site_->AssayJson({"score", "@last"});
    EXPECT_EQ(score["state"], "valid") << score;
    if (score["run_details"].size() != 3) {
      ADD_FAILURE() << score;
      return "";
    }
    for (const Json& run : score["run_details"])
      EXPECT_EQ(run["verdict"], "ok") << run;
    return site_->Assay({"logs", score["run_details"][0]["id"]}).out;
  }

  static Site* site_;
  static Coordinator* coordinator_;
};

Site* SpatialEntryTest::site_ = nullptr;
Coordinator* SpatialEntryTest::coordinator_ = nullptr;

TEST_F(SpatialEntryTest, TwoNodesShareEachSample) {
  const std::string log = LogOfScored({.nodes = 2, .grid = "[2, 1]"});

  EXPECT_THAT(log, AllOf(HasSubstr("\"key\": \"spatial_grid\", \"value\": [2, 1]"),
                         HasSubstr("\"key\": \"number_of_ranks\", \"value\": 2"),
                         HasSubstr("\"key\": \"global_batch_size\", \"value\": 2"),
                         HasSubstr("\"key\": \"cube_edge\", \"value\": 64"),
                         HasSubstr("\"status\": \"success\"")));
  EXPECT_THAT(log, Not(HasSubstr("\"key\": \"backend\""))) << "float32 on a CPU is the reference's";
}

// Each has read half of the files, and has them all.
TEST_F(SpatialEntryTest, NodesReadEachFileOnceWhereStagingIsTimed) {
  const std::string log = LogOfScored({.nodes = 2, .grid = "[2, 1]", .round = kTimedRound});

  EXPECT_LT(log.find("\"run_start\""), log.find("\"staging_start\""));
  for (const char* output : {"trainer_0.out", "trainer_1.out"})
    EXPECT_THAT(site_->Assay({"run", "files", "@last", output}).out,
                ContainsRegex("staged files=6 bytes=12[0-9]+ peer_bytes=6[0-9]+ "));
}

// On the clock, two ranks of a node unpack what both train on: the archives are touched after it
// has started, and each by one rank.
TEST_F(SpatialEntryTest, RanksOfANodeUnpackArchivesWhereStagingIsTimed) {
  const std::string log = LogOfScored({.per_node = 2, .round = kTimedRound, .dataset = "packed"});

  EXPECT_LT(log.find("\"run_start\""), log.find("\"staging_start\""));
  for (const char* output : {"trainer_0.out", "trainer_1.out"})
    EXPECT_THAT(site_->Assay({"run", "files", "@last", output}).out,
                ContainsRegex("staged files=3 bytes=6[0-9]+ peer_bytes=0 "));
  const Json touch = site_->AssayJson({"run", "show", "@last", "--touch"});
  EXPECT_THAT(touch.dump(), HasSubstr("packed/shards/0000"));
}

TEST_F(SpatialEntryTest, RanksOfANodeUnpackArchivesBeforeTheClock) {
  const std::string log = LogOfScored({.per_node = 2, .dataset = "packed"});

  EXPECT_GT(log.find("\"run_start\""), log.find("\"staging_stop\""));
}

TEST_F(SpatialEntryTest, TwoRanksOfOneNodeShareEachSample) {
  const std::string log = LogOfScored({.per_node = 2, .grid = "[1, 2]"});

  EXPECT_THAT(log, AllOf(HasSubstr("\"key\": \"spatial_grid\", \"value\": [1, 2]"),
                         HasSubstr("\"key\": \"number_of_nodes\", \"value\": 1"),
                         HasSubstr("\"key\": \"number_of_ranks\", \"value\": 2")));
}

// Where the CPU has the instructions the agents offer it, and a submission that names it gets it;
// elsewhere the plan says that no node has it.
TEST_F(SpatialEntryTest, BfloatIsChosenByName) {
  const Json node = site_->AssayJson({"node", "show", "local-0"});
  const Json& backends = node["backends"];
  const bool is_offered =
      std::find(backends.begin(), backends.end(), "onednn-bf16") != backends.end();
  if (!is_offered) {
    WriteFile(site_->Path("entry.toml"), Submission({.backend = "onednn-bf16"}));
    const Json plan = site_->AssayJson({"plan", site_->Path("entry.toml")});
    EXPECT_EQ(plan["nodes_matching"], 0) << plan;
    GTEST_SKIP() << "this CPU has no AVX512_BF16";
  }

  const std::string log = LogOfScored({.backend = "onednn-bf16"});

  EXPECT_THAT(log, AllOf(HasSubstr("\"key\": \"backend\", \"value\": \"onednn-bf16\""),
                         HasSubstr("\"key\": \"accelerators_per_node\", \"value\": 0")));
  const Json entry = site_->AssayJson({"entry", "show", "@last"});
  EXPECT_EQ(entry["backend"], "onednn-bf16") << entry;
}

}  // namespace
}  // namespace assay::testing
