// DeepCAM as a user meets it: climate maps made and verified by the command line, an entry in a
// facility's round on two nodes that normalise together, a valid score.

#include <csignal>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "common/file.h"
#include "tests/e2e/site.h"
#include "tests/support/status_matchers.h"
#include "tests/support/write_file.h"

namespace assay::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// Small enough that even a busy host trains it in seconds; any network that says "background"
// everywhere passes 0.3. Of 36 runs, each with a seed of its own, most took 3 epochs and two took
// 7: a limit of 8 is missed now and then, one of 100 is not.
constexpr char kRoundText[] = R"([round]
name = "e2e-deepcam"
base = "hpc-3.0.0"
label = "Round of the end-to-end tests: not an MLPerf result"

[benchmark]
name = "deepcam"
runs = 3
target = 0.3

[[rule]]
id = "R-FAC-901"
key = "train_samples"
equals = 17
section = "e2e-deepcam, Data set"
remedy = "train on all samples"

[[rule]]
id = "R-FAC-902"
key = "eval_samples"
equals = 5
section = "e2e-deepcam, Data set"
remedy = "evaluate on all samples"

[[rule]]
id = "R-FAC-903"
key = "map_height"
equals = 32
hyperparameter = true
section = "e2e-deepcam, Model"
remedy = "use maps of 32 x 48"

[[rule]]
id = "R-FAC-904"
key = "map_width"
equals = 48
hyperparameter = true
section = "e2e-deepcam, Model"
remedy = "use maps of 32 x 48"

[[rule]]
id = "R-FAC-905"
key = "base_filter_count"
equals = 4
hyperparameter = true
section = "e2e-deepcam, Model"
remedy = "keep the 4 filters"

[[rule]]
id = "R-FAC-906"
key = "middle_block_count"
equals = 1
hyperparameter = true
section = "e2e-deepcam, Model"
remedy = "keep the one middle block"
)";

constexpr char kSubmission[] = R"(round        = "e2e-deepcam"
benchmark    = "deepcam"
division     = "closed"
organization = "Example"
system       = "this-host"
dataset      = "cam"
nodes        = 2
epochs_max   = 100
status       = "research"

[hyperparameters]
global_batch_size               = 4
batchnorm_group_size            = 2
gradient_accumulation_frequency = 1
opt_name                        = "LAMB"
opt_lr                          = 0.01
opt_betas                       = [0.9, 0.999]
opt_eps                         = 1e-6
opt_weight_decay                = 0.01
scheduler_type                  = "multistep"
scheduler_milestones            = [1000]
scheduler_decay_rate            = 0.1
scheduler_lr_warmup_steps       = 0
scheduler_lr_warmup_factor      = 1
map_height                      = 32
map_width                       = 48
base_filter_count               = 4
middle_block_count              = 1
)";

TEST(DeepcamEntryTest, ReachesAScoreFromGeneratedMaps) {
  Site site;
  WriteFile(site.Path("share/assay/rounds/e2e-deepcam.toml"), kRoundText);
  LogTail tail(site.Path("dev.fifo"));
  const ProcessId dev = site.Start({site.Program("assay"), "dev", "--workers", "2"}, tail.path());
  ASSERT_TRUE(tail.WaitFor("Ctrl-C ends it").has_value());
  const Outcome made =
      site.Assay({"dataset", "generate", site.Path("cam"), "--benchmark", "deepcam", "--train",
                  "17", "--eval", "5", "--height", "32", "--width", "48"});
  ASSERT_EQ(made.exit_code, 0) << made.Text();
  ASSERT_EQ(site.Assay({"dataset", "verify", site.Path("cam")}).exit_code, 0);
  ASSERT_EQ(site.Assay({"dataset", "add", "cam", site.Path("cam")}).exit_code, 0);
  WriteFile(site.Path("cam.toml"), kSubmission);

  const Outcome submitted = site.Assay({"submit", site.Path("cam.toml"), "--wait"});

  EXPECT_EQ(submitted.exit_code, 0) << submitted.Text();
  const Json score = site.AssayJson({"score", "@last"});
  EXPECT_EQ(score["state"], "valid") << score;
  ASSERT_THAT(score["run_details"], SizeIs(3));
  for (const Json& run : score["run_details"]) {
    EXPECT_EQ(run["verdict"], "ok") << run;
    EXPECT_GE(run["quality"], 0.3) << run;
    const Outcome events = site.Assay({"logs", run["id"], "--events"});
    EXPECT_THAT(events.out, HasSubstr("after run_start")) << events.Text();
  }
  EXPECT_THAT(SignalGroup(dev, SIGINT), IsOk());
  EXPECT_THAT(WaitForExit(dev, absl::Minutes(1)), IsOkAndHolds(0));
}

}  // namespace
}  // namespace assay::testing
