// Throughput sets: instances side by side, of which one is killed.

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"

#include "common/file.h"
#include "tests/e2e/site.h"
#include "tests/support/await.h"
#include "tests/support/official_checker.h"
#include "tests/support/write_file.h"

namespace assay::testing {
namespace {

constexpr char kAttach[] = R"(launcher { kind: "attach" })";  // workers are started by hand

using ::testing::HasSubstr;

std::string ThroughputText(const SubmissionText& entry, int instances) {
  return absl::StrReplaceAll(
      entry.ToString(),
      {{"nodes = 2", absl::StrCat("nodes = 1\nmetric = \"throughput\"\ninstances = ", instances)},
       {"\"closed\"", "\"open\""}});
}

std::deque<Worker> StartWorkers(const Site& site, const Coordinator& coordinator, int count) {
  std::deque<Worker> workers;
  for (int i = 0; i < count; ++i)
    workers.emplace_back(site, absl::StrCat("n", i), coordinator.address());
  return workers;
}

// The values of the first row behind the headings of the last table of the file.
std::map<std::string, std::string> LastTable(absl::string_view csv) {
  std::vector<std::string> lines = absl::StrSplit(csv, '\n', absl::SkipWhitespace());
  if (lines.size() < 2) return {};
  const std::vector<std::string> keys = absl::StrSplit(lines[lines.size() - 2], ',');
  const std::vector<std::string> values = absl::StrSplit(lines.back(), ',');
  std::map<std::string, std::string> table;
  for (size_t i = 0; i < std::min(keys.size(), values.size()); ++i)
    table[keys[i]] = values[i];
  return table;
}

// Kills the trainer of a run, as a node that fails does.
void KillTrainer(const Worker& worker) {
  const std::string runs = JoinPath(worker.data_directory(), "data/runs");
  const auto kill_it = [&runs] {
    const std::vector<std::string> names = ListDirectory(runs).value_or(std::vector<std::string>{});
    if (names.empty()) return false;
    const std::string record =
        ReadFile(JoinPath(runs, JoinPath(names[0], "trainers.json"))).value_or("");
    const Json json = Json::parse(record, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || json["processes"].empty()) return false;
    return kill(json["processes"][0]["pid"].get<pid_t>(), SIGKILL) == 0;
  };
  EXPECT_TRUE(Await(kill_it)) << "no trainer was started on " << worker.data_directory();
}

// The round asks for ten.
// A choice that the official summary has to agree with: 10 of the 11 that count.
void LeaveTheWorstOut(const Site& site) {
  const Json choices = site.AssayJson({"score", "@last", "--prune"})["items"];
  ASSERT_EQ(choices.size(), 2u) << choices;
  EXPECT_EQ(choices[0]["model_count"], 11);
  EXPECT_EQ(choices[1]["model_count"], 10);
  const Outcome too_few = site.Assay({"prune", "@last", "--keep", "9"});
  EXPECT_NE(too_few.exit_code, 0);
  EXPECT_THAT(too_few.err, HasSubstr("expected 10 to 10, found 9"));
  const Outcome unscored = site.Assay({"prune", "@last", "r-1", "r-3"});
  EXPECT_NE(unscored.exit_code, 0);
  EXPECT_THAT(unscored.err, HasSubstr("without these runs there is no score: only 9"));

  const Outcome pruned = site.Assay({"prune", "@last", "--keep", "10"});
  ASSERT_EQ(pruned.exit_code, 0) << pruned.Text();
  const Outcome again = site.Assay({"prune", "@last", "--keep", "10"});
  EXPECT_NE(again.exit_code, 0);
  EXPECT_THAT(again.err, HasSubstr("chosen once"));
  const Json entry = site.AssayJson({"entry", "show", "@last"});
  EXPECT_EQ(entry["pruned_runs"], choices[1]["left_out"]);
  EXPECT_EQ(entry["pruned_count"], 1);
  EXPECT_DOUBLE_EQ(entry["time_to_all_minutes"].get<double>(),
                   choices[1]["time_to_all_minutes"].get<double>());
  // All nodes have this machine's clock.
  EXPECT_NEAR(entry["corrected_minutes"].get<double>(), entry["time_to_all_minutes"].get<double>(),
              entry["uncertainty_ms"].get<double>() / 60000);
  EXPECT_GT(entry["start_spread_ms"].get<double>(), 0);
}

TEST(ThroughputTest, InstancesRunSideBySideAndAFailedOneIsLeftOut) {
  Site site;
  const Coordinator coordinator(&site, kAttach);
  ProvideBeacons(site, "small", 256, 32);
  const std::deque<Worker> workers = StartWorkers(site, coordinator, 12);

  const std::string file = site.Path("throughput.toml");
  WriteFile(file, ThroughputText({.round = "hpc-3.0.0", .epochs_max = 60}, 12));
  const Outcome submitted = site.Assay({"submit", file});
  ASSERT_EQ(submitted.exit_code, 0) << submitted.Text();
  KillTrainer(workers[1]);
  const Outcome waited = site.Assay({"wait", "@last", "--timeout", "10m"});
  ASSERT_EQ(waited.exit_code, 0) << waited.Text();

  EXPECT_EQ(site.AssayJson({"entry", "show", "@last"})["model_count"], 11);
  ASSERT_NO_FATAL_FAILURE(LeaveTheWorstOut(site));
  const Json entry = site.AssayJson({"entry", "show", "@last"});
  EXPECT_EQ(entry["state"], "valid") << entry;
  EXPECT_EQ(entry["scaling"], "weak");
  EXPECT_EQ(entry["model_count"], 10);
  EXPECT_EQ(entry["instance_scale"], 1);
  double first = INFINITY;
  double last = 0;
  for (const Json& run : entry["run_details"]) {
    if (run["state"] != "succeeded" || run["id"] == entry["pruned_runs"][0]) continue;
    first = std::min(first, run["run_start_ms"].get<double>());
    last = std::max(last, run["run_stop_ms"].get<double>());
  }
  EXPECT_DOUBLE_EQ(entry["time_to_all_minutes"].get<double>(), (last - first) / 60000);
  EXPECT_EQ(site.AssayJson({"run", "show", "r-2"})["state"], "failed");

  const Outcome exported = site.Assay({"entry", "export", "@last", "package"});
  ASSERT_EQ(exported.exit_code, 0) << exported.Text();
  EXPECT_THAT(exported.out, HasSubstr("10 result files and 2 pruned ones"));

  std::string why_not;
  const std::string python = ProvideOfficialChecker(&why_not);
  if (python.empty()) GTEST_SKIP() << why_not;
  const Outcome summary = site.RunProgram({python, "-m", "mlperf_logging.result_summarizer",
                                           site.Path("package/Example"), "hpc", "3.0.0", "--csv",
                                           site.Path("summary.csv")});
  ASSERT_EQ(summary.exit_code, 0) << summary.Text();
  const std::string csv = ReadFile(site.Path("summary.csv")).value_or(summary.Text());
  std::map<std::string, std::string> official = LastTable(csv);
  EXPECT_EQ(official["cosmoflow:number_of_models"], "10.0") << csv << summary.Text();
  EXPECT_EQ(official["cosmoflow:instance_scale"], "1.0") << csv;
  double official_minutes = 0;
  EXPECT_TRUE(absl::SimpleAtod(official["cosmoflow:time_to_train_all"], &official_minutes)) << csv;
  EXPECT_NEAR(official_minutes, entry["time_to_all_minutes"].get<double>(), 1e-9);
}

TEST(ThroughputTest, FewerThanTheRoundAsksForAreInvalid) {
  Site site;
  const Coordinator coordinator(&site, kAttach);
  ProvideBeacons(site, "small", 64, 16);
  const std::deque<Worker> workers = StartWorkers(site, coordinator, 3);
  const std::string file = site.Path("throughput.toml");
  WriteFile(file, ThroughputText({.epochs_max = 40}, 3));
  ASSERT_EQ(site.Assay({"submit", file}).exit_code, 0);
  KillTrainer(workers[1]);
  const Outcome waited = site.Assay({"wait", "@last", "--timeout", "10m"});
  EXPECT_EQ(waited.exit_code, 1) << waited.Text();
  const Json entry = site.AssayJson({"entry", "show", "@last"});
  EXPECT_EQ(entry["state"], "invalid");
  EXPECT_THAT(entry["state_reason"].get<std::string>(),
              HasSubstr("only 2 of at least 3 instances are left"));

  WriteFile(file, ThroughputText({.epochs_max = 40}, 2));
  const Outcome refused = site.Assay({"submit", file});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, HasSubstr("R-RUN-001"));
}

}  // namespace
}  // namespace assay::testing
