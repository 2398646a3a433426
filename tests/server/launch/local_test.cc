// Agents are shell scripts that say on a FIFO what happens to them: reading it is the only waiting.

#include "server/launch/local.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

#include "assay/v1/config.pb.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/process.h"
#include "server/launch/registry.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::launch {
namespace {

using assay::testing::IsOk;
using assay::testing::IsOkAndHolds;
using assay::testing::StatusIs;
using assay::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LocalLauncherTest : public ::testing::Test {
 protected:
  LocalLauncherTest() {
    CHECK(mkfifo(dir_.Path("fifo").c_str(), 0600) == 0);
    // Open for both, so that neither end ever waits for the other to open.
    fifo_.open(dir_.Path("fifo"));
  }

  // A program whose lines are `body`; it may write lines to "$F".
  void WriteProgram(const std::string& body) {
    CHECK_OK(WriteFileAtomic(dir_.Path("agent"),
                             absl::StrCat("#!/bin/sh\nF=", dir_.Path("fifo"), "\n", body, "\n"),
                             0755));
  }

  LocalOptions Options() const {
    return {.directory = dir_.Path("agents"),
            .worker_program = dir_.Path("agent"),
            .pause_min = absl::Milliseconds(1),
            .pause_max = absl::Milliseconds(2)};
  }

  LaunchRequest Request() const {
    return {.worker = "w0",
            .server_address = "127.0.0.1:7443",
            .ca_pem = "-----BEGIN CERTIFICATE-----\n",
            .enrolment_token = "assay_secret",
            .cores = {2, 3}};
  }

  std::string ReadLine() {
    std::string line;
    std::getline(fifo_, line);
    return line;
  }

  TempDir dir_;
  std::fstream fifo_;
};

TEST_F(LocalLauncherTest, StartsAnAgentWithAConfigurationThatParses) {
  WriteProgram("echo \"$1\" > $F; exec sleep 1000");
  LocalLauncher launcher(Options());
  ASSERT_THAT(launcher.Start(Request()), IsOk());

  const std::vector<std::string> argument = absl::StrSplit(ReadLine(), '=');
  ASSERT_THAT(argument, ElementsAre("--config", dir_.Path("agents/w0/worker.conf")));
  v1::WorkerConfig config;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(*ReadFile(argument[1]), &config));
  EXPECT_EQ(config.name(), "w0");
  EXPECT_EQ(config.server_address(), "127.0.0.1:7443");
  EXPECT_THAT(config.cores(), ElementsAre(2, 3));
  EXPECT_THAT(ReadFile(config.enrolment_token_path()), IsOkAndHolds("assay_secret\n"));
  EXPECT_THAT(ReadFile(config.ca_certificate_path()), IsOkAndHolds(Request().ca_pem));
  struct stat info {};
  ASSERT_EQ(stat(config.enrolment_token_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
}

TEST_F(LocalLauncherTest, StartsADeadAgentAgain) {
  WriteProgram("echo started > $F; exit 3");
  LocalLauncher launcher(Options());
  ASSERT_THAT(launcher.Start(Request()), IsOk());
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(ReadLine(), "started");
  const std::vector<AgentInfo> agents = launcher.Describe();
  ASSERT_EQ(agents.size(), 1u);
  EXPECT_GE(agents[0].restart_count, 4);
  EXPECT_EQ(agents[0].last_end, "exit code 3");
}

TEST_F(LocalLauncherTest, StoppingEndsTheAgentAndSaysTermFirst) {
  WriteProgram("trap 'echo term > $F; exit 0' TERM; echo ready > $F; while :; do sleep 0.01; done");
  LocalLauncher launcher(Options());
  ASSERT_THAT(launcher.Start(Request()), IsOk());
  EXPECT_EQ(ReadLine(), "ready");
  launcher.StopAll();
  EXPECT_EQ(ReadLine(), "term");
  EXPECT_TRUE(launcher.Describe().empty());
  launcher.StopAll();
}

TEST_F(LocalLauncherTest, AnAgentDeafToTermIsKilled) {
  WriteProgram("trap '' TERM; echo $$ > $F; while :; do sleep 0.01; done");
  LocalOptions options = Options();
  options.stop_grace = absl::Milliseconds(1);
  LocalLauncher launcher(options);
  ASSERT_THAT(launcher.Start(Request()), IsOk());
  pid_t pid = 0;
  ASSERT_TRUE(absl::SimpleAtoi(ReadLine(), &pid));
  launcher.StopAll();
  EXPECT_THAT(IdentifyProcess(pid), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(LocalLauncherTest, FindsTheAgentOfAnEarlierCoordinatorAndStartsNoSecond) {
  WriteProgram("echo second > $F; exec sleep 1000");
  ASSERT_THAT(MakeDirectories(dir_.Path("agents/w0")), IsOk());
  const auto orphan = Spawn({.argv = {"/bin/sleep", "1000"}, .new_session = true});
  ASSERT_THAT(orphan, IsOk());
  ASSERT_THAT(WriteFileAtomic(dir_.Path("agents/w0/agent.pid"),
                              absl::StrCat(orphan->pid, " ", orphan->start_ticks, "\n")),
              IsOk());

  LocalLauncher launcher(Options());
  ASSERT_THAT(launcher.Start(Request()), IsOk());
  // When the orphan ends, and not before, its successor starts.
  std::thread killer([&] {
    while (launcher.Describe()[0].state != AgentState::kRunning)
      std::this_thread::yield();
    EXPECT_EQ(launcher.Describe()[0].pid, orphan->pid);
    EXPECT_THAT(SignalGroup(*orphan, SIGKILL), IsOk());
    EXPECT_THAT(WaitForExit(*orphan, absl::Seconds(30)), IsOk());
  });
  EXPECT_EQ(ReadLine(), "second");
  killer.join();
}

TEST_F(LocalLauncherTest, AProgramThatIsMissingIsReportedAndTriedAgain) {
  LocalLauncher launcher(Options());
  ASSERT_THAT(launcher.Start(Request()), IsOk());
  while (launcher.Describe()[0].restart_count < 2)
    std::this_thread::yield();
  EXPECT_THAT(launcher.Describe()[0].last_end, HasSubstr("agent"));
}

// ------------------------------------------------------------------------------------ allocations

class LocalAllocationTest : public LocalLauncherTest {
 protected:
  LocalOptions TwoNodes() const {
    LocalOptions options = Options();
    options.server_address = "127.0.0.1:7443";
    options.ca_pem = Request().ca_pem;
    options.make_enrolment_token = [](const std::string& worker) {
      return absl::StatusOr<std::string>("token of " + worker);
    };
    options.cores = {{0}, {1}};
    return options;
  }
  static core::Allocation Wanting(int32_t node_count, int64_t id = 7) {
    return {.id = core::AllocationId{id},
            .spec = {.launcher = "local", .node_count = node_count, .labels = {{"rack", "a"}}}};
  }
};

TEST_F(LocalAllocationTest, GrantsTheAgentsThatItHasStartedUntilItIsReleased) {
  WriteProgram("trap 'exit 0' TERM; echo ready > $F; while :; do sleep 0.01; done");
  LocalLauncher launcher(TwoNodes());

  const auto grant = launcher.Acquire(Wanting(5));

  ASSERT_THAT(grant, IsOk());
  EXPECT_THAT((*grant)->workers, ElementsAre("local-0", "local-1")) << "no more than there are";
  EXPECT_EQ(ReadLine(), "ready");
  EXPECT_EQ(ReadLine(), "ready");
  v1::WorkerConfig config;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      *ReadFile(dir_.Path("agents/local-1/worker.conf")), &config));
  EXPECT_EQ(config.labels().at("allocation"), "a-7");
  EXPECT_EQ(config.labels().at("rack"), "a");
  EXPECT_THAT(ReadFile(config.enrolment_token_path()), IsOkAndHolds("token of local-1\n"));
  EXPECT_THAT(launcher.Acquire(Wanting(1, 8)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("a-7")));

  EXPECT_THAT(launcher.Release(core::AllocationId{7}), IsOk());
  EXPECT_TRUE(launcher.Describe().empty());
  EXPECT_THAT(launcher.Acquire(Wanting(1, 8)), IsOk());
}

TEST_F(LocalAllocationTest, ReleasesAlsoWhatAnEarlierCoordinatorHasStarted) {
  ASSERT_THAT(MakeDirectories(dir_.Path("agents/local-0")), IsOk());
  const auto orphan = Spawn({.argv = {"/bin/sleep", "1000"}, .new_session = true});
  ASSERT_THAT(orphan, IsOk());
  ASSERT_THAT(WriteFileAtomic(dir_.Path("agents/local-0/agent.pid"),
                              absl::StrCat(orphan->pid, " ", orphan->start_ticks, "\n")),
              IsOk());
  LocalLauncher launcher(TwoNodes());

  EXPECT_THAT(launcher.Release(core::AllocationId{7}), IsOk());

  EXPECT_THAT(WaitForExit(*orphan, absl::Seconds(30)), IsOk());
}

TEST_F(LocalAllocationTest, SaysWhichProgramItCannotRun) {
  LocalLauncher launcher(TwoNodes());
  EXPECT_THAT(launcher.Acquire(Wanting(2)),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(dir_.Path("agent"))));
}

TEST(ShareCoresTest, SharesNeighboursEvenlyOrSaysWhatIsMissing) {
  EXPECT_THAT(*ShareCores(8, 3, 0),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5)));
  EXPECT_THAT(*ShareCores(8, 2, 3), ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5)));
  EXPECT_THAT(ShareCores(2, 3, 0), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2")));
  EXPECT_THAT(ShareCores(4, 2, 3), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("6")));
  EXPECT_THAT(ShareCores(4, 0, 0), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(LauncherRegistryTest, EveryKindCanBeMadeAndNoOther) {
  const RealClock clock;
  LaunchOptions options;
  options.slurm.clock = &clock;
  options.slurm.commands.directory = "/nonexistent";
  for (const std::string& kind : LauncherKinds())
    EXPECT_THAT(MakeLauncher(kind, options), IsOk());
  EXPECT_THAT(MakeLauncher("", options), IsOk());
  EXPECT_THAT(MakeLauncher("moon", options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("attach or local or slurm")));
}

}  // namespace
}  // namespace assay::launch
