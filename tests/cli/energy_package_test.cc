// From the counters of two nodes to the power logs of a package: what the meters show while five
// runs go on is judged, shown, exported, and has the energy that the official tools find in it.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "common/file.h"
#include "common/package/set_score.h"
#include "common/rules/registry.h"
#include "common/sha256.h"
#include "server/runtime/energy_judge.h"
#include "server/runtime/evidence_file.h"
#include "server/store/artifacts.h"
#include "tests/cli/fake_coordinator.h"
#include "tests/cli/invocation.h"
#include "tests/rules/sample_log.h"
#include "tests/support/clock_files.h"
#include "tests/support/official_checker.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"
#include "worker/agent/telemetry/sampler.h"
#include "worker/agent/telemetry/source.h"

namespace assay {
namespace {

using cli::ExitStatus;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::Not;

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int kRuns = 5;

// As Slurm's: of the whole node, and no meter.
class Check final : public agent::TelemetrySource {
 public:
  explicit Check(int64_t mw) : mw_(mw) {}
  const std::vector<telemetry::Column>& columns() const override { return columns_; }
  void Sample(std::span<int64_t> values) override {
    if (mw_ > 0) values[0] = mw_;
  }

 private:
  const int64_t mw_;
  const std::vector<telemetry::Column> columns_ = {{"check.power.slurm", "mW", false}};
};

class EnergyPackageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    v1::Submission entry = coordinator_.entries.back();
    entry.mutable_spec()->set_round("hpc-3.0.0");
    entry.mutable_spec()->set_benchmark("deepcam");
    entry.mutable_spec()->set_division("open");
    entry.set_required_run_count(kRuns);
    entry.clear_runs();
    const v1::Run sample = coordinator_.runs[0];
    coordinator_.runs.clear();
    for (int i = 1; i <= kRuns; ++i) {
      coordinator_.runs.push_back(MakeRun(sample, i));
      entry.add_runs(coordinator_.runs.back().name());
    }
    coordinator_.entries = {entry};
    coordinator_.Start();
    run_.env.variables["ASSAY_SOCKET"] = coordinator_.socket_path();
  }

  v1::Run MakeRun(v1::Run run, int number) {
    testing::SampleLog log = testing::DeepcamLog();
    const int64_t start_ms = log.TimeOf("run_start");
    const int64_t stop_ms = start_ms + 90'000 + number * 1'250;
    log.SetTime("run_stop", stop_ms);
    run.set_name(absl::StrCat("runs/r-", number));
    run.set_number(number);
    run.set_run_start_ms(start_ms);
    run.set_run_stop_ms(stop_ms);
    run.clear_artifacts();
    Keep(&run, absl::StrCat("result_", number, ".txt"), log.Text());
    return run;
  }

  void Keep(v1::Run* run, const std::string& name, const std::string& bytes) {
    v1::ArtifactRef* const artifact = run->add_artifacts();
    artifact->set_file_name(name);
    artifact->set_sha256(Sha256Hex(bytes));
    artifact->set_size_bytes(static_cast<int64_t>(bytes.size()));
    coordinator_.artifacts[artifact->sha256()] = bytes;
  }

  // What a node keeps of its Cray counters from three seconds before the run to after it. Its power
  // changes; from `silent_from_s` to `silent_to_s` the controller stands still.
  std::string Telemetry(const v1::Run& run, int node, double silent_from_s = -1,
                        double silent_to_s = -1) {
    constexpr int64_t kNodeNs = 40 * kSecondNs;
    const std::string path = dir_.Path("telemetry.bin");
    int64_t now_ns = kNodeNs;
    agent::SourceOptions options{.proc = dir_.Path("proc"), .sys = dir_.Path("sys")};
    options.now_ns = [&now_ns] { return now_ns; };
    PutCounters(0, node);
    std::vector<std::unique_ptr<agent::TelemetrySource>> sources;
    sources.push_back(agent::MakeCraySource(options));
    sources.push_back(agent::MakeHwmonSource(options));
    sources.push_back(std::make_unique<Check>(check_mw_));
    const telemetry::Header header{.boot_id = "boot",
                                   .wall_us = (run.run_start_ms() - 3000) * 1000 + wall_ahead_us_,
                                   .node_ns = kNodeNs};
    auto sampler = *agent::Sampler::Create(
        path, path + ".live", std::move(sources), header,
        {.node_ns = [&now_ns] { return now_ns; }, .cpu_ns = [] { return int64_t{0}; }});
    const int64_t run_ms = run.run_stop_ms() - run.run_start_ms();
    for (int i = 0; i * 1000 < run_ms + 6000; ++i) {
      const bool is_silent = i >= silent_from_s && i < silent_to_s;
      PutCounters(is_silent ? static_cast<int>(silent_from_s) - 1 : i, node);
      EXPECT_THAT(sampler->Sample(), IsOk());
      now_ns += kSecondNs;
    }
    EXPECT_THAT(sampler->Flush(), IsOk());
    return *ReadFile(path);
  }

  // As they stand after `second` seconds.
  void PutCounters(int second, int node) {
    const std::string folder = "sys/cray/pm_counters/";
    const int watts = 400 + 90 * node + 10 * (second % 5);
    Put(folder + "energy",
        absl::StrCat(100'000 + second * (400 + 90 * node) + 20 * (second % 7), " J 1 us\n"));
    Put(folder + "power", absl::StrCat(watts, " W 1 us\n"));
    Put(folder + "freshness", absl::StrCat(second * 10, "\n"));
    Put(folder + "startup", "1\n");
  }
  void Put(const std::string& name, const std::string& text) {
    const std::string path = dir_.Path(name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    testing::WriteFile(path, text);
  }

  // What the coordinator makes of the run's files; the run shows it afterwards.
  core::RunFacts Judge(v1::Run* run) {
    core::Run judged;
    judged.number = run->number();
    judged.nodes.resize(2);
    for (const v1::ArtifactRef& file : run->artifacts()) {
      core::ArtifactRef ref{.file_name = file.file_name(), .sha256 = file.sha256()};
      ref.size_bytes = file.size_bytes();
      auto writer = *artifacts_->Begin(ref);
      EXPECT_THAT(writer->Append(coordinator_.artifacts[file.sha256()]), IsOk());
      EXPECT_THAT(writer->Finish().status(), IsOk());
      judged.artifacts.push_back(ref);
    }
    core::RunFacts facts;
    facts.run_start_ms = run->run_start_ms();
    facts.run_stop_ms = run->run_stop_ms();
    runtime::JudgeEnergy(judged, runtime::ClocksOf(facts.run_start_ms, judged, *artifacts_),
                         *artifacts_, &facts);
    runtime::ChargeSwitches(switches_, &facts);
    for (const core::SwitchPower& one : facts.switches) {
      run->add_switches()->set_name(one.name);
      run->mutable_switches(run->switches_size() - 1)->set_watts(one.watts);
    }
    if (facts.energy_joules) run->set_energy_joules(*facts.energy_joules);
    if (facts.energy_error_joules) run->set_energy_error_joules(*facts.energy_error_joules);
    run->set_energy_scope(facts.energy_scope);
    for (const core::Finding& finding : facts.findings) {
      v1::Finding* const shown = run->add_findings();
      shown->set_rule(finding.rule_id);
      shown->set_severity(v1::Finding::WARNING);
      shown->set_expected(finding.expected);
      shown->set_found(finding.found);
    }
    return facts;
  }

  // What the official tools say of the package: nothing against it, and this energy of its score.
  void ExpectOfficialEnergy(double joules) {
    std::string why_not;
    const std::string python = testing::ProvideOfficialChecker(&why_not);
    if (python.empty()) GTEST_SKIP() << why_not;
    const std::string package = run_.home.Path("package/Example_University");
    const testing::ProgramRun checked =
        testing::RunToEnd({python, "-m", "mlperf_logging.package_checker", package, "hpc", "3.0.0",
                           "--log_output", dir_.Path("checker.log")});
    EXPECT_THAT(checked.output, HasSubstr("PACKAGE CHECKER FOUND NO ERRORS, SUCCESS"));
    constexpr char kScore[] =
        "import sys; from mlperf_logging.result_summarizer import result_summarizer as s;"
        "print('energy', s._compute_strong_score_standalone('deepcam', 'cluster-a', True, "
        "sys.argv[1], 'hpc', '3.0.0')[1])";
    const testing::ProgramRun scored = testing::RunToEnd({python, "-c", kScore, Results()});
    const size_t at = scored.output.find("energy ");
    ASSERT_NE(at, std::string::npos) << scored.output;
    EXPECT_NEAR(std::stod(scored.output.substr(at + 7)), joules, 1e-3) << scored.output;
  }

  std::string Results() const {
    return run_.home.Path("package/Example_University/results/cluster-a/strong/deepcam");
  }

  int64_t check_mw_ = 0;  // what somebody else says of each node; 0: nobody does
  std::vector<core::SwitchPower> switches_;
  int64_t wall_ahead_us_ = 420'000;  // of the nodes, when telemetry begins
  testing::TempDir dir_;
  testing::FakeCoordinator coordinator_;
  testing::Invocation run_;
  std::unique_ptr<store::ArtifactStore> artifacts_ =
      *store::ArtifactStore::Open(dir_.Path("artifacts"));
};

std::vector<std::string> RulesOf(const core::RunFacts& facts) {
  std::vector<std::string> rules;
  for (const core::Finding& finding : facts.findings)
    rules.push_back(finding.rule_id);
  return rules;
}

TEST_F(EnergyPackageTest, TheOfficialToolsFindOurEnergyInWhatIsExported) {
  for (v1::Run& run : coordinator_.runs) {
    for (const int node : {0, 1})
      Keep(&run, absl::StrCat("telemetry_", node, ".bin"), Telemetry(run, node));
    const core::RunFacts facts = Judge(&run);
    EXPECT_THAT(facts.findings, ::testing::IsEmpty());
    EXPECT_EQ(facts.energy_scope, "node");
    // 400 W and 490 W, more or less, and half a second at each end.
    const double run_s = static_cast<double>(run.run_stop_ms() - run.run_start_ms()) / 1000;
    EXPECT_NEAR(facts.energy_joules.value_or(0), 890 * run_s, 0.02 * 890 * run_s);
    EXPECT_LT(facts.energy_error_joules.value_or(1e9), 2 * 1100);
  }

  EXPECT_EQ(run_.Run("run show r-1 -o table"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(run_.out, ::testing::ContainsRegex("energy to solution +8[01].* kJ .* whole nodes"));
  EXPECT_EQ(run_.Run("score e-1 --json"), ExitStatus::kDone) << run_.err;
  const double score_joules = nlohmann::json::parse(run_.out)["energy_joules"].get<double>();
  EXPECT_NEAR(score_joules,
              (coordinator_.runs[1].energy_joules() + coordinator_.runs[2].energy_joules() +
               coordinator_.runs[3].energy_joules()) /
                  3,
              1e-6)
      << "of the runs that the olympic mean is of";

  EXPECT_EQ(run_.Run("analyze compute e-1 --json"), ExitStatus::kDone) << run_.err;
  EXPECT_NEAR(nlohmann::json::parse(run_.out)["items"][0]["energy_joules"].get<double>(),
              score_joules, 1e-6);
  EXPECT_EQ(run_.Run("compare r-1 r-2 -o table"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(run_.out, HasSubstr("energy_joules"));

  ASSERT_EQ(run_.Run("entry export e-1 package"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(*ReadFile(Results() + "/power/result_2/node_1.txt"), HasSubstr(R"("host": "w1")"));

  const auto folders = package::FindResultFolders(run_.home.Path("package"));
  ASSERT_THAT(folders, IsOk());
  const auto set = package::ScoreFolder(folders->at(0), *rules::FindRuleSet("3.0"));
  ASSERT_THAT(set, IsOk());
  ASSERT_EQ(set->energies.size(), size_t{kRuns});
  for (size_t i = 0; i < set->energies.size(); ++i)
    EXPECT_NEAR(set->energies[i].value_or(0), coordinator_.runs[i].energy_joules(), 1e-3);

  ExpectOfficialEnergy(score_joules);
}

TEST_F(EnergyPackageTest, SwitchesAreInTheEnergyAndInThePackageAsTheOfficialToolsCountThem) {
  switches_ = {{"ib-leaf-1", 231}, {"ib-spine", 404.5}};
  for (v1::Run& run : coordinator_.runs) {
    for (const int node : {0, 1})
      Keep(&run, absl::StrCat("telemetry_", node, ".bin"), Telemetry(run, node));
    const double run_s = static_cast<double>(run.run_stop_ms() - run.run_start_ms()) / 1000;
    EXPECT_NEAR(Judge(&run).energy_joules.value_or(0), (890 + 635.5) * run_s, 0.02 * 890 * run_s);
  }
  EXPECT_EQ(run_.Run("run show r-1 -o table"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(run_.out, HasSubstr("whole nodes and 2 switches rated 636 W"));
  EXPECT_EQ(run_.Run("score e-1 --json"), ExitStatus::kDone) << run_.err;
  const double score_joules = nlohmann::json::parse(run_.out)["energy_joules"].get<double>();

  ASSERT_EQ(run_.Run("entry export e-1 package"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(*ReadFile(Results() + "/power/result_5/sw_1.txt"),
              AllOf(HasSubstr(R"("interconnect_power_est", "value": 404.5)"),
                    HasSubstr(R"("host": "ib-spine")")));
  ExpectOfficialEnergy(score_joules);
}

// A list that was changed between the runs of a set would make other numbers of files.
TEST_F(EnergyPackageTest, RunsThatCountOtherSwitchesHaveNoPowerEntry) {
  for (v1::Run& run : coordinator_.runs) {
    if (run.number() == 4) switches_ = {{"ib-leaf-1", 231}};
    for (const int node : {0, 1})
      Keep(&run, absl::StrCat("telemetry_", node, ".bin"), Telemetry(run, node));
    Judge(&run);
  }
  ASSERT_EQ(run_.Run("entry export e-1 package"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(
      run_.err,
      HasSubstr(
          "the package has no power: r-4 counts another number of switches (1) than r-1 (0)"));
  EXPECT_FALSE(FileExists(Results() + "/power"));
}

// Components have no power entry; neither have switches beside them.
TEST_F(EnergyPackageTest, ComponentsAreChargedWithNoSwitch) {
  core::RunFacts facts;
  facts.run_start_ms = 0;
  facts.run_stop_ms = 1000;
  facts.energy_joules = 5;
  facts.energy_scope = "components";
  runtime::ChargeSwitches({{"ib-leaf-1", 231}}, &facts);
  EXPECT_EQ(facts.energy_joules, 5);
  EXPECT_THAT(facts.switches, ::testing::IsEmpty());
}

TEST_F(EnergyPackageTest, AGapIsToldBeforeAnythingIsExported) {
  for (v1::Run& run : coordinator_.runs) {
    Keep(&run, "telemetry_0.bin", Telemetry(run, 0));
    const bool is_third = run.number() == 3;
    Keep(&run, "telemetry_1.bin", Telemetry(run, 1, is_third ? 20 : -1, is_third ? 24 : -1));
    const core::RunFacts facts = Judge(&run);
    if (!is_third) continue;
    ASSERT_THAT(RulesOf(facts), ElementsAre("R-PWR-010"));
    EXPECT_THAT(facts.findings[0].found,
                HasSubstr("node 1: node.cray has no reading for 5.0 s at 16 s"));
    EXPECT_EQ(facts.energy_scope, "node") << "the counter went on: the energy is known";
  }
  ASSERT_EQ(run_.Run("entry export e-1 package"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(run_.err, HasSubstr("the package has no power: r-3 has R-PWR-010"));
  EXPECT_FALSE(FileExists(Results() + "/power"));
}

TEST_F(EnergyPackageTest, WithoutAMeterOnEachNodeThereIsNoEnergy) {
  v1::Run& one = coordinator_.runs[0];
  Keep(&one, "telemetry_0.bin", Telemetry(one, 0));
  const core::RunFacts facts = Judge(&one);
  EXPECT_THAT(RulesOf(facts), ElementsAre("R-PWR-012"));
  EXPECT_FALSE(facts.energy_joules.has_value());

  EXPECT_EQ(run_.Run("run show r-2 -o table"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(run_.out, AllOf(HasSubstr("not measured"), Not(HasSubstr("joules"))));
  EXPECT_EQ(run_.Run("score e-1 --json"), ExitStatus::kDone) << run_.err;
  EXPECT_FALSE(nlohmann::json::parse(run_.out).contains("energy_joules"));
  ASSERT_EQ(run_.Run("entry export e-1 package"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(run_.err, Not(HasSubstr("power"))) << "nobody asked for it";
}

// A wall clock that is 40 s wrong would move the run's time to where nothing was read.
TEST_F(EnergyPackageTest, ANodesWallClockDoesNotMoveItsEnergy) {
  v1::Run right = coordinator_.runs[0];
  v1::Run wrong = right;
  for (const int node : {0, 1})
    Keep(&right, absl::StrCat("telemetry_", node, ".bin"), Telemetry(right, node));
  Keep(&wrong, "telemetry_0.bin", Telemetry(wrong, 0));
  wall_ahead_us_ += 40'000'000;
  Keep(&wrong, "telemetry_1.bin", Telemetry(wrong, 1));
  const core::RunFacts by_wall = Judge(&wrong);
  EXPECT_THAT(RulesOf(by_wall), ElementsAre("R-PWR-010", "R-PWR-011")) << "by agents of before";

  // Telemetry begins 2.58 s before the run, when the nodes' clocks show 40 s.
  Keep(&wrong, "arrivals.jsonl",
       testing::StartArrivals(wrong.run_start_ms(), 42 * kSecondNs + 580'000'000));
  Keep(&wrong, "offsets.jsonl", testing::Offsets(42 * kSecondNs + 580'000'000));
  Keep(&wrong, "offsets_1.jsonl", testing::Offsets(42 * kSecondNs + 580'000'000));
  const core::RunFacts by_offsets = Judge(&wrong);
  EXPECT_TRUE(RulesOf(by_offsets).empty());
  EXPECT_NEAR(by_offsets.energy_joules.value_or(0), Judge(&right).energy_joules.value_or(1), 1e-6);
}

TEST_F(EnergyPackageTest, AShortRunHasEnergyAndNoPowerEntry) {
  v1::Run& one = coordinator_.runs[0];
  one.set_run_stop_ms(one.run_start_ms() + 30'000);
  for (const int node : {0, 1})
    Keep(&one, absl::StrCat("telemetry_", node, ".bin"), Telemetry(one, node));
  const core::RunFacts facts = Judge(&one);
  EXPECT_THAT(RulesOf(facts), ElementsAre("R-PWR-011", "R-PWR-011"));
  EXPECT_EQ(facts.energy_scope, "node");
}

TEST_F(EnergyPackageTest, MetersThatContradictEachOtherAreTold) {
  v1::Run& one = coordinator_.runs[0];
  Put("sys/class/hwmon/hwmon0/name", "power_meter\n");
  Put("sys/class/hwmon/hwmon0/power1_average", "450000000\n");
  for (const int node : {0, 1})
    Keep(&one, absl::StrCat("telemetry_", node, ".bin"), Telemetry(one, node));
  const core::RunFacts facts = Judge(&one);
  ASSERT_THAT(RulesOf(facts), ElementsAre("R-PWR-013", "R-PWR-013"));
  EXPECT_THAT(
      facts.findings[0].found,
      ::testing::ContainsRegex("node 0: 36[0-9]+ J by node.cray and 41062 J by node.power_meter"));
}

// It looks at nodes now and then, so a short run is none to compare.
TEST_F(EnergyPackageTest, WhatSlurmSaysOfANodeIsComparedOverLongRuns) {
  check_mw_ = 500'000;  // node 0 draws 400 W, node 1 490 W
  for (const int64_t seconds : {300, 700}) {
    v1::Run one = coordinator_.runs[0];
    one.set_run_stop_ms(one.run_start_ms() + seconds * 1000);
    for (const int node : {0, 1})
      Keep(&one, absl::StrCat("telemetry_", node, ".bin"), Telemetry(one, node));
    const core::RunFacts facts = Judge(&one);
    EXPECT_EQ(facts.energy_scope, "node");
    if (seconds == 300) {
      EXPECT_THAT(RulesOf(facts), ::testing::IsEmpty());
      continue;
    }
    ASSERT_THAT(RulesOf(facts), ElementsAre("R-PWR-013"));
    EXPECT_THAT(facts.findings[0].found,
                ::testing::ContainsRegex("node 0: 28[0-9]+ J by node.cray and 350000 J by slurm"));
  }
}

}  // namespace
}  // namespace assay
