// What people and programs see of each command, against golden files in tests/golden/cli. Rewrite
// them with ASSAY_UPDATE_GOLDEN=1 build/dev/tests/cli_test and review the difference.

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "cli/command/command.h"
#include "cli/terminal/print.h"
#include "common/sha256.h"
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

constexpr char kFile[] = R"(round = "cosmoflow-mini"
benchmark = "cosmoflow"
division = "closed"
organization = "Example University"
system = "cluster-a"
dataset = "cosmo32"
nodes = 2

[hyperparameters]
global_batch_size = 16
opt_name = "adamw"
)";

class CommandsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    coordinator_.Start();
    run_.env.variables["ASSAY_SOCKET"] = coordinator_.socket_path();
  }

  // Compares with tests/golden/cli/<name>.txt, or writes it.
  void ExpectGolden(const std::string& name, const std::string& text) {
    const std::string path = absl::StrCat("tests/golden/cli/", name, ".txt");
    if (std::getenv("ASSAY_UPDATE_GOLDEN") != nullptr) {
      CHECK_OK(MakeDirectories("tests/golden/cli"));
      CHECK_OK(WriteFileAtomic(path, text));
    }
    EXPECT_EQ(ReadFile(path).value_or("(no golden file)"), text) << path;
  }

  testing::FakeCoordinator coordinator_;
  testing::Invocation run_;
};

TEST_F(CommandsTest, ListsAndShowsLookAsAgreed) {
  const std::pair<const char*, const char*> kCommands[] = {
      {"entry_list", "entry list"},
      {"entry_show", "entry show e-1"},
      {"set_list", "set list"},
      {"set_show", "set show s-1"},
      {"set_spread", "set spread s-1"},
      {"run_list", "run list"},
      {"run_show", "run show r-1"},
      {"node_list", "node list"},
      {"node_show", "node show w0"},
      {"allocation_list", "allocation list"},
      {"allocation_show", "allocation show a-2"},
      {"dataset_list", "dataset list"},
      {"dataset_show", "dataset show cosmo32"},
      {"dataset_nodes", "dataset nodes cosmo32"},
      {"token_list", "admin token list"},
      {"score", "score e-1"},
      {"status", "status @last"},
      {"why", "why e-2"}};
  for (const auto& [name, command] : kCommands) {
    for (const char* output : {"table", "plain", "json"}) {
      EXPECT_EQ(run_.Run(absl::StrCat(command, " -o ", output)), ExitStatus::kDone) << command;

      ExpectGolden(absl::StrCat(name, ".", output), run_.out);
    }
  }
}

TEST_F(CommandsTest, StagingNamesTheNodesAndWaitsForThemIfAsked) {
  EXPECT_EQ(run_.Run("dataset stage cosmo32 -o table"), ExitStatus::kDone) << run_.err;
  EXPECT_EQ(run_.out, "cosmo32 is staged to the cache of 2 nodes: w0, w1\n");
  EXPECT_THAT(run_.err, HasSubstr("assay dataset nodes cosmo32"));
  EXPECT_EQ(run_.Run("dataset evict cosmo32 --node w1 -o table"), ExitStatus::kDone) << run_.err;
  EXPECT_EQ(run_.out, "cosmo32 goes from the cache of 1 node: w1\n");

  EXPECT_EQ(run_.Run("dataset stage cosmo32 --node w1 --wait --json=id,state"), ExitStatus::kDone);
  EXPECT_THAT(run_.out, AllOf(HasSubstr("complete"), Not(HasSubstr("w0"))));
  EXPECT_EQ(run_.Run("dataset stage cosmo32 --timeout 0s"), ExitStatus::kTimedOut);
  EXPECT_THAT(run_.out, HasSubstr("goes on when r-4 has ended"));
  coordinator_.workers[1].mutable_cache_orders(0)->set_state(v1::CacheOrder::FAILED);
  coordinator_.workers[1].mutable_cache_orders(0)->set_reason("the disk is full");
  EXPECT_EQ(run_.Run("dataset stage cosmo32 --node w1 --wait"), ExitStatus::kFailed);
  EXPECT_THAT(run_.err, HasSubstr("w1: the disk is full"));

  v1::CacheOrder* const order = coordinator_.workers[1].mutable_cache_orders(0);
  order->set_state(v1::CacheOrder::PENDING);
  order->set_failure_count(3);
  order->mutable_retry_time()->set_seconds(absl::ToUnixSeconds(absl::Now()) + 40);
  EXPECT_EQ(run_.Run("dataset nodes cosmo32"), ExitStatus::kDone);
  EXPECT_THAT(run_.out, ContainsRegex("failed 3 times, again in (39|40|41) s: the disk is full"));

  EXPECT_EQ(run_.Run("dataset stage nothing"), ExitStatus::kNotFound);
  EXPECT_EQ(run_.Run("dataset pin cosmo32 --node w1 -o table"), ExitStatus::kDone) << run_.err;
  EXPECT_EQ(run_.out, "cosmo32 is pinned in the cache of 1 node: w1\n");
  EXPECT_EQ(run_.Run("dataset unpin cosmo32 --from-archives /data"), ExitStatus::kUsage);
}

TEST_F(CommandsTest, TablesFitTheTerminal) {
  for (const int width : {60, 80, 200}) {
    run_.env.width = width;
    run_.Run("entry list -o table");

    for (const absl::string_view line : absl::StrSplit(run_.out, '\n'))
      EXPECT_LE(cli::DisplayWidth(line), width) << line;
    ExpectGolden(absl::StrCat("entry_list.width", width), run_.out);
  }
}

TEST_F(CommandsTest, FollowsPagesToTheEnd) {
  run_.Run("entry list -o plain -H");
  EXPECT_THAT(run_.out, AllOf(HasSubstr("e-2\t"), HasSubstr("e-1\t")));

  run_.Run("entry list -o plain -H --state valid");
  EXPECT_THAT(run_.out, AllOf(Not(HasSubstr("e-2\t")), HasSubstr("e-1\t")));
}

TEST_F(CommandsTest, JsonCanBeNarrowedToFields) {
  EXPECT_EQ(run_.Run("entry show e-1 --json=id,score_minutes"), ExitStatus::kDone);
  EXPECT_EQ(nlohmann::json::parse(run_.out),
            nlohmann::json({{"schema", "assay.entry/v1"}, {"id", "e-1"}, {"score_minutes", 0.36}}));

  run_.Run("entry show e-1 --json=?");
  EXPECT_THAT(run_.out, HasSubstr("score_minutes\n"));

  EXPECT_EQ(run_.Run("entry list --json=scroe_minutes"), ExitStatus::kUsage);
  EXPECT_THAT(run_.err, HasSubstr("did you mean 'score_minutes'"));
}

TEST_F(CommandsTest, NamesAndJqFeedOtherPrograms) {
  run_.Run("run list -o name");
  EXPECT_EQ(run_.out, "r-1\nr-2\nr-3\nr-4\n");
  run_.RunWords({"run", "list", "--jq", ".items | length"});
  EXPECT_EQ(run_.out, "4\n");
  run_.Run("run show r-1 -o yaml");
  EXPECT_THAT(run_.out, HasSubstr("\nid: r-1\n"));
  EXPECT_EQ(run_.RunWords({"run", "list", "--jq", ".items["}), ExitStatus::kUsage);
}

TEST_F(CommandsTest, ComparesRunsByTheirDifferences) {
  EXPECT_EQ(run_.Run("compare r-1 r-2 -o plain --exit-code"), ExitStatus::kDifferent);
  EXPECT_THAT(run_.out, AllOf(HasSubstr("field\tr-1\tr-2\tratio\n"),
                              HasSubstr("seed\t1001\t1002\t\n"), Not(HasSubstr("state"))));

  run_.Run("compare r-1 r-2 -o plain --all");
  EXPECT_THAT(run_.out, HasSubstr("state\tsucceeded\tsucceeded\t\n"));
  EXPECT_EQ(run_.Run("compare r-1 e-1"), ExitStatus::kUsage);
  EXPECT_EQ(run_.Run("compare r-1"), ExitStatus::kUsage);
}

TEST_F(CommandsTest, ErrorsHaveTheirOwnExitStatus) {
  const std::pair<const char*, ExitStatus> kCases[] = {
      {"entry show e-99", ExitStatus::kNotFound},
      {"entry show 42", ExitStatus::kUsage},
      {"entry show r-1", ExitStatus::kUsage},
      {"node drain w0", ExitStatus::kNotAllowed},
      {"cancel e-1", ExitStatus::kConflict},
      {"cancel e-2", ExitStatus::kDone},
      {"status e-1 --exit-code", ExitStatus::kDone},
      {"submit no-such-file.toml", ExitStatus::kNotFound},
      {"rules explain R-NO-1", ExitStatus::kNotFound},
      {"wait e-1 --timeout soon", ExitStatus::kUsage}};
  for (const auto& [command, status] : kCases)
    EXPECT_EQ(run_.Run(command), status) << command << ": " << run_.err;
}

TEST_F(CommandsTest, ANoteOnAnEntryIsShownWithIt) {
  ASSERT_EQ(run_.RunWords({"entry", "note", "e-1", "the switch was broken", "-o", "table"}),
            ExitStatus::kDone)
      << run_.err;
  EXPECT_THAT(run_.out, HasSubstr("noted on e-1"));
  EXPECT_EQ(run_.Run("entry show e-1 -o table"), ExitStatus::kDone);
  EXPECT_THAT(run_.out, AllOf(HasSubstr("Notes"), HasSubstr("the switch was broken")));
  EXPECT_EQ(run_.Run("entry note e-99 text"), ExitStatus::kNotFound);
}

TEST_F(CommandsTest, AnEntryShowsTheProgramThatItsRunsExecute) {
  v1::CommandWorkload* const program = coordinator_.entries[0].mutable_spec()->mutable_command();
  program->add_command("python3");
  program->add_command("${ASSAY_CODE}/train.py");
  program->mutable_source()->set_git_commit("2c627d4");
  program->mutable_image()->set_path("/shared/train.sqsh");
  const std::string id = coordinator_.entries[0].name().substr(std::string("submissions/").size());

  EXPECT_EQ(run_.Run("entry show " + id + " -o table"), ExitStatus::kDone);

  EXPECT_THAT(run_.out, AllOf(HasSubstr("python3 ${ASSAY_CODE}/train.py\n"), HasSubstr("2c627d4"),
                              HasSubstr("/shared/train.sqsh")));
}

TEST_F(CommandsTest, RevokingANodeSaysHowToLetItInAgain) {
  EXPECT_EQ(run_.Run("node revoke w0 --reason stolen -o table"), ExitStatus::kDone);
  EXPECT_EQ(run_.out,
            "the certificates of w0 are revoked: whoever holds one is refused from now on\n");
  EXPECT_THAT(run_.err, HasSubstr("assay admin enrol w0"));

  EXPECT_EQ(run_.Run("node revoke w0 --json"), ExitStatus::kDone);
  const nlohmann::json node = nlohmann::json::parse(run_.out);
  EXPECT_EQ(node["state"], "gone");
  EXPECT_EQ(node["certificate_generation"], 1);
  EXPECT_EQ(node["certificates_revoked"], "2023-11-14T22:13:20Z");
}

TEST_F(CommandsTest, AsksForNodesAndGivesThemBack) {
  EXPECT_EQ(run_.Run("allocation list --all -o name"), ExitStatus::kDone);
  EXPECT_EQ(run_.out, "a-2\na-1\n") << "also the one that has ended";
  EXPECT_EQ(run_.Run("allocation request --nodes 3 --lifetime 2h -o table"), ExitStatus::kDone);
  EXPECT_EQ(run_.out, "a-3 is requested: 3 nodes of launcher local\n");
  EXPECT_EQ(run_.Run("allocation release a-3 --reason over -o table"), ExitStatus::kDone);
  EXPECT_EQ(run_.out,
            "a-3 is releasing: it gets no more runs, and its nodes go when those on them have "
            "ended\n");
  EXPECT_EQ(run_.Run("allocation show w0"), ExitStatus::kUsage);
  EXPECT_EQ(run_.Run("allocation show a-9"), ExitStatus::kNotFound);
}

TEST_F(CommandsTest, StatusTellsScriptsThatItStillRuns) {
  EXPECT_EQ(run_.Run("status e-2 --exit-code"), ExitStatus::kStillRunning);
  EXPECT_EQ(run_.Run("status e-2"), ExitStatus::kDone);
}

TEST_F(CommandsTest, UnreachableCoordinatorIsNamed) {
  coordinator_.Stop();

  EXPECT_EQ(run_.Run("entry list"), ExitStatus::kUnreachable);
  EXPECT_THAT(run_.err, AllOf(HasSubstr(coordinator_.socket_path()), HasSubstr("assay doctor")));
  EXPECT_EQ(run_.out, "");
}

TEST_F(CommandsTest, PlanPointsAtTheOffendingLine) {
  v1::Finding finding;
  finding.set_rule("R-HP-004");
  finding.set_severity(v1::Finding::ERROR);
  finding.set_key("opt_name");
  finding.set_found("\"adamw\"");
  finding.set_expected("one of \"sgd\", \"SGD\"");
  finding.set_remedy("set opt_name to sgd, or submit to the open division");
  coordinator_.plan_findings = {finding};
  run_.Write("cosmoflow.toml", kFile);

  EXPECT_EQ(run_.Run("plan cosmoflow.toml"), ExitStatus::kRuleViolation);
  EXPECT_THAT(run_.err,
              HasSubstr("cosmoflow.toml:11:12: error R-HP-004: opt_name = \"adamw\", expected one "
                        "of \"sgd\", \"SGD\"\n   11 | opt_name = \"adamw\"\n"
                        "      |            ^\n  fix: set opt_name to sgd"));

  EXPECT_EQ(run_.Run("submit cosmoflow.toml"), ExitStatus::kRuleViolation);
  EXPECT_THAT(coordinator_.request_ids, ElementsAre());

  EXPECT_EQ(run_.Run("plan cosmoflow.toml --json"), ExitStatus::kRuleViolation);
  const nlohmann::json plan = nlohmann::json::parse(run_.out);
  EXPECT_EQ(plan["is_accepted"], false);
  EXPECT_EQ(plan["findings"][0]["line"], 11);
  EXPECT_EQ(plan["findings"][0]["column"], 12);
}

TEST_F(CommandsTest, SubmitSaysWhatToDoNext) {
  run_.Write("cosmoflow.toml", kFile);

  EXPECT_EQ(run_.Run("submit cosmoflow.toml"), ExitStatus::kDone);
  EXPECT_EQ(run_.out, "submitted e-3 (set s-3, 1 runs)\n");
  EXPECT_THAT(run_.err, HasSubstr("assay wait e-3"));
  ASSERT_EQ(coordinator_.request_ids.size(), 1U);
  EXPECT_EQ(coordinator_.request_ids[0].size(), 36U);

  run_.Run("submit cosmoflow.toml -q");
  EXPECT_EQ(run_.err, "");
}

TEST_F(CommandsTest, WaitEndsWithTheEntry) {
  EXPECT_EQ(run_.Run("wait e-1 -o table"), ExitStatus::kDone);
  EXPECT_THAT(run_.out, HasSubstr("21.60 s"));

  coordinator_.ends_when_watched = true;
  EXPECT_EQ(run_.Run("wait e-2"), ExitStatus::kFailed);
}

// Touches of several nodes are compared as well as their clocks are known.
TEST_F(CommandsTest, ATouchBeforeRunStartIsBadOnlyIfTheVerdictSaysSo) {
  coordinator_.runs[0].set_first_touch_us(coordinator_.runs[0].run_start_ms() * 1000 - 5400);
  coordinator_.runs[1].set_first_touch_us(coordinator_.runs[1].run_start_ms() * 1000 - 54000);
  coordinator_.runs[1].add_findings()->set_rule("R-TIM-001");

  run_.Run("wait e-1 -o table");

  EXPECT_THAT(run_.err, HasSubstr("-5.4 ms after run_start, which is as near as the nodes' clocks "
                                  "tell"));
  EXPECT_THAT(run_.err, HasSubstr("-54.0 ms after run_start "));
  EXPECT_THAT(run_.err, HasSubstr("+2.5 ms after run_start "));
}

TEST_F(CommandsTest, WaitTimesOutAndLetsTheRunsGoOn) {
  EXPECT_EQ(run_.Run("wait e-2 --timeout 1"), ExitStatus::kTimedOut);
  EXPECT_THAT(run_.err, HasSubstr("e-2 goes on"));
}

TEST_F(CommandsTest, InterruptDetaches) {
  run_.interrupt.Raise();

  EXPECT_EQ(run_.Run("wait e-2"), ExitStatus::kInterrupted);
  EXPECT_THAT(run_.err, HasSubstr("assay wait e-2"));
}

v1::RunEvent LogEvent(int64_t seq, const std::string& key, int64_t time_ms) {
  v1::RunEvent event;
  event.set_seq(seq);
  event.set_kind(v1::RunEvent::LOG_LINE);
  event.set_text(absl::StrCat(R"(:::MLLOG {"namespace": "", "time_ms": )", time_ms,
                              R"(, "event_type": "INTERVAL_START", "key": ")", key,
                              R"(", "value": null, "metadata": {"file": "a", "lineno": 1}})"));
  event.set_wall_us(time_ms * 1000 + 40);
  return event;
}

TEST_F(CommandsTest, LogsShowTheWitnessBesideTheClaim) {
  constexpr int64_t kStartMs = 1704110700000;
  v1::RunEvent touch;
  touch.set_seq(3);
  touch.set_kind(v1::RunEvent::FIRST_TOUCH);
  touch.set_text(R"({"access":"open","mechanism":"fanotify","path":"/data/a.tfrecord"})");
  touch.set_wall_us(kStartMs * 1000 + 2500);
  touch.set_is_attributed(true);
  coordinator_.run_events = {LogEvent(1, "init_start", kStartMs - 900),
                             LogEvent(2, "run_start", kStartMs), touch,
                             LogEvent(4, "run_stop", kStartMs + 21000)};

  EXPECT_EQ(run_.Run("logs r-1 --events -o table"), ExitStatus::kDone);
  ExpectGolden("logs_events", run_.out);

  run_.Run("logs r-1 -o table");
  EXPECT_EQ(run_.out,
            absl::StrCat(coordinator_.run_events[0].text(), "\n", coordinator_.run_events[1].text(),
                         "\n", coordinator_.run_events[3].text(), "\n"));
}

TEST_F(CommandsTest, LogsGoOnWhereTheStreamBroke) {
  for (int64_t seq = 1; seq <= 5; ++seq)
    coordinator_.run_events.push_back(LogEvent(seq, absl::StrCat("key_", seq), 1000 * seq));
  coordinator_.break_after = 2;

  EXPECT_EQ(run_.Run("logs r-4 -f --json"), ExitStatus::kDone);
  EXPECT_THAT(coordinator_.resumed_after, ElementsAre(0, 2));
  std::vector<int64_t> seen;
  for (const absl::string_view line : absl::StrSplit(run_.out, '\n', absl::SkipEmpty()))
    seen.push_back(nlohmann::json::parse(line.begin(), line.end())["seq"].get<int64_t>());
  EXPECT_THAT(seen, ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(CommandsTest, TokenSecretsComeAloneOnStdout) {
  EXPECT_EQ(run_.RunWords({"admin", "token", "create", "--principal", "alice", "--role",
                           "submitter", "--organization", "CSCS"}),
            ExitStatus::kDone);
  EXPECT_EQ(run_.out, "assay_secret\n");

  EXPECT_EQ(run_.Run("admin token create --principal bob --role submitter"), ExitStatus::kUsage);
  EXPECT_EQ(run_.Run("admin token create --principal bob --role king"), ExitStatus::kUsage);
}

TEST_F(CommandsTest, ExportWritesTheOfficialLayoutByteForByte) {
  EXPECT_EQ(run_.Run("entry export e-1 package"), ExitStatus::kDone) << run_.err;

  const std::string root = run_.home.Path("package/Example_University");
  for (const int i : {1, 2, 3})
    EXPECT_EQ(ReadFile(absl::StrCat(root, "/results/cluster-a/strong/cosmoflow/result_", i, ".txt"))
                  .value_or(""),
              absl::StrCat("log of run ", i, "\n"));
  const nlohmann::json system =
      nlohmann::json::parse(ReadFile(root + "/systems/cluster-a.json").value_or(""));
  EXPECT_EQ(system["submitter"], "Example University");
  EXPECT_EQ(system["framework"], "Assay");
  EXPECT_EQ(system["number_of_nodes"], "2");
  EXPECT_EQ(system["accelerator_on-chip_memories"], "");
  const std::string benchmark = root + "/benchmarks/cosmoflow/cluster-a/";
  for (const char* name :
       {"README.md", "submission.toml", "setup.sh", "init_datasets.sh", "run_and_time.sh"})
    EXPECT_TRUE(FileExists(benchmark + name)) << name;

  EXPECT_EQ(run_.Run("entry export e-1 package"), ExitStatus::kConflict);
  EXPECT_EQ(run_.Run("entry export e-2 other"), ExitStatus::kConflict);
}

TEST_F(CommandsTest, ExportRefusesBytesThatDoNotHaveTheirDigest) {
  coordinator_.artifacts.begin()->second = "forged";

  EXPECT_EQ(run_.Run("entry export e-1 package"), ExitStatus::kFailed);
  EXPECT_THAT(run_.err, HasSubstr("digest"));
}

TEST_F(CommandsTest, FilesOfARunAreListedPrintedAndSavedByteForByte) {
  EXPECT_EQ(run_.Run("run files r-1 --json"), ExitStatus::kDone) << run_.err;
  EXPECT_EQ(nlohmann::json::parse(run_.out)["items"][0]["file"], "result_1.txt") << run_.out;

  EXPECT_EQ(run_.Run("run files r-1 result_1.txt"), ExitStatus::kDone) << run_.err;
  EXPECT_EQ(run_.out, "log of run 1\n");

  EXPECT_EQ(run_.Run("run files r-1 --to saved"), ExitStatus::kDone) << run_.err;
  EXPECT_EQ(ReadFile(run_.home.Path("saved/result_1.txt")).value_or(""), "log of run 1\n");

  EXPECT_EQ(run_.Run("run files r-1 other.txt"), ExitStatus::kNotFound);
  EXPECT_THAT(run_.err, HasSubstr("r-1 has no file other.txt; 'assay run files r-1' lists"));
  coordinator_.artifacts.begin()->second = "forged";
  EXPECT_EQ(run_.Run("run files r-1 result_1.txt"), ExitStatus::kFailed);
}

// A tree with one entry of two odd files, in the shape of a published round.
std::string WriteResults(testing::Invocation* run) {
  run->Write("round/ORG/systems/sys.json", R"({"division": "Closed", "number_of_nodes": "16"})");
  run->Write("round/ORG/results/sys/strong/cosmoflow/result_1.txt", "no record at all\n");
  run->Write("round/ORG/results/sys/strong/cosmoflow/result_2.txt",
             ":::MLLOG {\"key\": \"run_start\"\n");
  run->Write("round/ORG/results/sys/strong/cosmoflow/notes.md", "odd\n");
  return "round";
}

TEST_F(CommandsTest, ImportSendsOddFilesWithFindingsAndOnlyOnce) {
  WriteResults(&run_);

  EXPECT_EQ(run_.Run("import round --round v1.0"), ExitStatus::kDone) << run_.err;
  ASSERT_EQ(coordinator_.imports.size(), 1U);
  const testing::FakeCoordinator::ReceivedImport& import = coordinator_.imports[0];
  const v1::ImportHeader& sent = import.header;
  EXPECT_EQ(sent.source_path(), "ORG/results/sys/strong/cosmoflow");
  EXPECT_EQ(sent.round(), "hpc-1.0.0");
  EXPECT_EQ(sent.spec().division(), "closed");
  EXPECT_EQ(sent.spec().node_count(), 16);
  ASSERT_EQ(import.runs.size(), 2U);
  EXPECT_EQ(import.logs[0], "no record at all\n");
  EXPECT_EQ(import.runs[0].sha256(), Sha256Hex("no record at all\n"));
  EXPECT_EQ(import.runs[0].size_bytes(), std::ssize(import.logs[0]));
  EXPECT_FALSE(import.runs[0].judged().is_compliant());
  EXPECT_GT(import.runs[1].judged().findings_size(), 0);
  ASSERT_EQ(sent.findings_size(), 3);
  EXPECT_THAT(sent.findings(0).found(), HasSubstr("notes.md"));
  EXPECT_EQ(sent.findings(1).rule(), "R-SEED-001");
  EXPECT_EQ(sent.findings(1).severity(), v1::Finding::WARNING);
  EXPECT_EQ(sent.findings(2).rule(), "R-SEED-004");

  EXPECT_EQ(run_.Run("import round --round v1.0"), ExitStatus::kDone);
  EXPECT_EQ(coordinator_.imports.size(), 1U);
  EXPECT_THAT(run_.err, HasSubstr("1 were there already"));
}

// The HPC rules want runs with equal seeds pruned from throughput sets, also in the open division.
TEST_F(CommandsTest, ImportTellsOfEqualSeedsInAThroughputSet) {
  run_.Write("round/ORG/systems/sys.json", R"({"division": "open"})");
  for (const char* name : {"result_1.txt", "result_2.txt", "result_3.txt"})
    run_.Write(absl::StrCat("round/ORG/results/sys/weak/cosmoflow/", name),
               ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1, \"event_type\": \"POINT_IN_TIME\", "
               "\"key\": \"seed\", \"value\": 7, \"metadata\": {\"file\": \"a.py\", "
               "\"lineno\": 1}}\n");

  EXPECT_EQ(run_.Run("import round --round v1.0"), ExitStatus::kDone) << run_.err;

  const v1::ImportHeader& sent = coordinator_.imports.at(0).header;
  ASSERT_EQ(sent.findings_size(), 1);
  EXPECT_EQ(sent.findings(0).rule(), "R-SEED-002");
  EXPECT_THAT(sent.findings(0).found(), HasSubstr("in 2 logs"));
}

TEST_F(CommandsTest, FoldersAreScoredWithoutCoordinator) {
  coordinator_.Stop();
  WriteResults(&run_);

  EXPECT_EQ(run_.Run("score round --round v1.0 --json"), ExitStatus::kFailed);
  EXPECT_EQ(nlohmann::json::parse(run_.out)["items"][0]["pass_count"], 0);
  EXPECT_EQ(run_.Run("rules check --round v1.0 round"), ExitStatus::kRuleViolation);
  EXPECT_EQ(run_.Run("score round"), ExitStatus::kUsage);
  EXPECT_EQ(run_.Run("score round --round v9"), ExitStatus::kNotFound);
}

}  // namespace
}  // namespace assay
