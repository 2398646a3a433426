// The agent over a coordinator in this process, with real steps and real trainers.

#include "worker/agent/agent.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/node_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/agent/fake_coordinator.h"
#include "tests/worker/agent/run_fixture.h"
#include "worker/agent/run_directory.h"

namespace assay::agent {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::IsSupersetOf;

// One agent on a thread.
class AgentThread {
 public:
  AgentThread(AgentOptions options, const std::string& target)
      : stop_(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)), endpoint_{.target = target} {
    stub_ = v1::WorkerService::NewStub(*MakeChannel(endpoint_));
    agent_ = std::make_unique<Agent>(std::move(options), endpoint_, stub_.get(), &clock_);
    thread_ = std::thread([this] { EXPECT_THAT(agent_->Run(stop_.get()), IsOk()); });
  }
  ~AgentThread() {
    if (!thread_.joinable()) return;
    TellToLeave();
    thread_.join();
  }

  void TellToLeave() {
    const uint64_t one = 1;
    EXPECT_EQ(write(stop_.get(), &one, sizeof(one)), 8);
  }
  // Blocks until the agent has ended by itself.
  void Join() { thread_.join(); }

 private:
  const RealClock clock_;
  const UniqueFd stop_;
  const Endpoint endpoint_;
  std::unique_ptr<v1::WorkerService::Stub> stub_;
  std::unique_ptr<Agent> agent_;
  std::thread thread_;
};

class AgentTest : public ::testing::Test {
 protected:
  AgentTest() : directory_(*RunDirectory::ForRun(run_.worker.data_directory(), run_.key)) {
    coordinator_.With([](State* s) { s->desired.set_action(v1::DesiredState::IDLE); });
  }
  using State = FakeCoordinator::State;

  void StartAgent() {
    agent_ =
        std::make_unique<AgentThread>(AgentOptions{.config = run_.worker,
                                                   .step_program = STEP_RUNNER,
                                                   .incarnation = absl::StrCat("i", ++incarnation_),
                                                   .system_description_json = "{\"x\": \"y\"}",
                                                   .tick = absl::Milliseconds(200),
                                                   .settle_time = settle_time_},
                                      coordinator_.target());
  }
  void Order(v1::DesiredState::Action action) {
    coordinator_.With([&](State* s) { s->desired = Desired(action); });
  }
  v1::DesiredState Desired(v1::DesiredState::Action action) const {
    v1::DesiredState desired;
    desired.set_action(action);
    desired.set_run(run_.key.run);
    desired.set_generation(run_.key.generation);
    if (action == v1::DesiredState::EXECUTE) *desired.mutable_spec() = run_.spec;
    return desired;
  }
  bool AwaitPhase(v1::WorkerStatus::Phase phase) {
    return coordinator_.Await([phase](const State& s) {
      return !s.requests.empty() && s.requests.back().status().phase() == phase;
    });
  }
  v1::WorkerStatus LastStatus() {
    return coordinator_.With([](State* s) { return s->requests.back().status(); });
  }
  // As a coordinator decides while the run is wanted.
  void OrderTheRun() {
    coordinator_.With([this](State* s) {
      s->decide = [this](const v1::SynchronizeRequest& request) {
        switch (request.status().phase()) {
          case v1::WorkerStatus::FINISHED:
            return Desired(v1::DesiredState::FORGET);
          case v1::WorkerStatus::EXECUTING:
            return Desired(v1::DesiredState::EXECUTE);
          default:
            return Desired(request.is_leaving() ? v1::DesiredState::IDLE
                                                : v1::DesiredState::EXECUTE);
        }
      };
    });
  }
  // Runs until the coordinator was asked thrice; what the node keeps of its clock in that file.
  std::vector<ClockSample> ClocksOfARun(const std::string& name) {
    run_.Trainer("until [ -e " + run_.dir.Path("go") + " ]; do sleep 0.01; done");
    StartAgent();
    OrderTheRun();
    EXPECT_TRUE(AwaitPhase(v1::WorkerStatus::EXECUTING));
    EXPECT_TRUE(coordinator_.Await([](const State& s) {
      return std::count_if(s.requests.begin(), s.requests.end(), [](const auto& request) {
               return request.status().phase() == v1::WorkerStatus::EXECUTING;
             }) >= 3;
    }));
    EXPECT_EQ(
        coordinator_.With([](State* s) { return s->requests.back(); }).poll_timeout().seconds(), 5);
    EXPECT_THAT(WriteFileAtomic(run_.dir.Path("go"), ""), IsOk());
    EXPECT_TRUE(AwaitPhase(v1::WorkerStatus::FINISHED));
    return ReadClockSamples(coordinator_.With([&name](State* s) { return s->files[name]; }));
  }
  bool AwaitLogLine(const std::string& text) {
    return coordinator_.Await([&](const State& s) {
      const auto it = s.events.find(run_.key.run);
      return it != s.events.end() &&
             std::any_of(it->second.begin(), it->second.end(),
                         [&](const v1::RunEvent& event) { return event.text() == text; });
    });
  }
  // As whoever ends all processes of a job at once.
  void Terminate(const std::string& processes_path) {
    const absl::StatusOr<ProcessRecord> record = directory_.ReadProcesses(processes_path);
    ASSERT_THAT(record, IsOk());
    for (const ProcessId& process : record->processes)
      ASSERT_TRUE(kill(process.pid, SIGTERM) == 0 || errno == ESRCH) << "it may have ended by now";
  }
  std::string Text() {
    return coordinator_.With([this](State* s) {
      std::string text;
      for (const v1::RunEvent& event : s->events[run_.key.run])
        if (event.kind() == v1::RunEvent::LOG_LINE) text += event.text() + "\n";
      return text;
    });
  }
  void ExpectSequence() {
    coordinator_.With([this](State* s) {
      int64_t seq = 0;
      for (const v1::RunEvent& event : s->events[run_.key.run])
        EXPECT_EQ(event.seq(), ++seq);
    });
  }
  std::string LogFile() {
    return coordinator_.With([](State* s) { return s->files["result_3.txt"]; });
  }

  RunFixture run_;
  const RunDirectory directory_;
  FakeCoordinator coordinator_;
  absl::Duration settle_time_ = AgentOptions().settle_time;
  int incarnation_ = 0;
  std::unique_ptr<AgentThread> agent_;  // last: it uses all of the above
};

TEST_F(AgentTest, CarriesARunFromOrderToForgetting) {
  run_.Trainer(
      "for i in 1 2 3; do echo line $i >> $LOG; done; "
      "read x < $DATA/train/a.bin; printf %s $x >> $LOG; "
      "until [ -e ../witness/touch.json -o -e ../witness/observed.json ]; do sleep 0.01; done");
  StartAgent();
  ASSERT_TRUE(AwaitPhase(v1::WorkerStatus::IDLE));
  Order(v1::DesiredState::EXECUTE);
  ASSERT_TRUE(AwaitPhase(v1::WorkerStatus::FINISHED));

  EXPECT_EQ(LastStatus().exit_code(), 0);
  EXPECT_EQ(LastStatus().reason(), "finished");
  std::vector<std::string> names;
  const v1::WorkerStatus finished = LastStatus();
  for (const v1::ArtifactRef& file : finished.artifacts())
    names.push_back(file.file_name());
  EXPECT_THAT(names,
              IsSupersetOf({"result_3.txt", "trainer_0.out", "step_0.log", "system_0.json"}));
  EXPECT_THAT(names, ::testing::Contains(::testing::AnyOf("touch_0.json", "observed_0.json")));
  ExpectSequence();
  EXPECT_THAT(Text(), HasSubstr("cache_clear"));
  EXPECT_EQ(Text(), LogFile() + "\n");  // the last line had no end
  coordinator_.With([this](State* s) {
    EXPECT_THAT(s->events[run_.key.run], ::testing::Contains(::testing::Property(
                                             &v1::RunEvent::kind, v1::RunEvent::FIRST_TOUCH)));
  });

  Order(v1::DesiredState::FORGET);
  ASSERT_TRUE(AwaitPhase(v1::WorkerStatus::IDLE));
  EXPECT_FALSE(FileExists(directory_.path()));
  Order(v1::DesiredState::EXECUTE);  // a late order starts nothing
  const size_t seen = coordinator_.With([](State* s) { return s->requests.size(); });
  ASSERT_TRUE(coordinator_.Await([&](const State& s) { return s.requests.size() > seen + 2; }));
  EXPECT_EQ(LastStatus().phase(), v1::WorkerStatus::IDLE);
}

TEST_F(AgentTest, EndsForARenewedCertificateWithoutTakingLeave) {
  const RealClock clock;
  const UniqueFd stop(eventfd(0, EFD_CLOEXEC));
  const Endpoint endpoint{.target = coordinator_.target()};
  const auto stub = v1::WorkerService::NewStub(*MakeChannel(endpoint));
  Agent agent({.config = run_.worker,
               .step_program = STEP_RUNNER,
               .incarnation = "i1",
               .renew_at = clock.Wall() + absl::Milliseconds(1)},
              endpoint, stub.get(), &clock);

  EXPECT_THAT(agent.Run(stop.get()), testing::IsOkAndHolds(AgentEnd::kRenewalIsDue));

  coordinator_.With([](State* s) {
    for (const v1::SynchronizeRequest& request : s->requests)
      EXPECT_FALSE(request.is_leaving());
  });
}

TEST_F(AgentTest, EndsWhenItsCertificateIsRefused) {
  const RealClock clock;
  const UniqueFd stop(eventfd(0, EFD_CLOEXEC));
  const Endpoint endpoint{.target = coordinator_.target()};
  const auto stub = v1::WorkerService::NewStub(*MakeChannel(endpoint));
  coordinator_.With([](State* s) {
    s->refuse_calls = {grpc::StatusCode::UNAUTHENTICATED, "revoked"};
  });
  Agent agent({.config = run_.worker, .step_program = STEP_RUNNER, .incarnation = "i1"}, endpoint,
              stub.get(), &clock);

  EXPECT_THAT(agent.Run(stop.get()), testing::IsOkAndHolds(AgentEnd::kCertificateRefused));
}

TEST_F(AgentTest, ARunOutlivesItsAgentAndIsTakenUpAgain) {
  ASSERT_EQ(system(("mkfifo " + run_.dir.Path("go")).c_str()), 0);
  run_.Trainer("echo before >> $LOG; read x < " + run_.dir.Path("go") + "; echo after >> $LOG");
  StartAgent();
  Order(v1::DesiredState::EXECUTE);
  ASSERT_TRUE(coordinator_.Await([this](const State& s) {
    const auto it = s.events.find(run_.key.run);
    return it != s.events.end() && it->second.size() >= 2;
  }));

  agent_.reset();
  EXPECT_TRUE(coordinator_.With([](State* s) { return s->requests.back().is_leaving(); }));
  ASSERT_THAT(WriteFileAtomic(run_.dir.Path("unused"), ""), IsOk());
  ASSERT_EQ(system(("echo go > " + run_.dir.Path("go")).c_str()), 0);
  while (!FileExists(directory_.ExitPath())) {
  }
  StartAgent();
  ASSERT_TRUE(AwaitPhase(v1::WorkerStatus::FINISHED));

  ExpectSequence();
  EXPECT_THAT(Text(), HasSubstr("before\nafter\n"));
  EXPECT_EQ(Text(), LogFile());
}

TEST_F(AgentTest, ANewAgentWatchesTheStepOfAnOldOne) {
  ASSERT_EQ(system(("mkfifo " + run_.dir.Path("go")).c_str()), 0);
  run_.Trainer("read x < " + run_.dir.Path("go") + "; exit 5");
  StartAgent();
  Order(v1::DesiredState::EXECUTE);
  ASSERT_TRUE(AwaitPhase(v1::WorkerStatus::EXECUTING));
  while (!FileExists(directory_.TrainersPath())) {
  }
  agent_.reset();
  StartAgent();
  ASSERT_TRUE(coordinator_.Await([](const State& s) {
    return s.requests.back().incarnation() == "i2" &&
           s.requests.back().status().phase() == v1::WorkerStatus::EXECUTING;
  }));

  ASSERT_EQ(system(("echo go > " + run_.dir.Path("go")).c_str()), 0);

  ASSERT_TRUE(AwaitPhase(v1::WorkerStatus::FINISHED));
  EXPECT_EQ(LastStatus().exit_code(), 5);
}

TEST_F(AgentTest, AnOrderToStopEndsTheRun) {
  run_.Trainer("trap 'exit 9' TERM; echo started >> $LOG; while :; do sleep 0.1; done");
  StartAgent();
  Order(v1::DesiredState::EXECUTE);
  ASSERT_TRUE(coordinator_.Await([this](const State& s) {
    const auto it = s.events.find(run_.key.run);
    return it != s.events.end() && it->second.size() >= 2;
  }));
  Order(v1::DesiredState::STOP);
  ASSERT_TRUE(AwaitPhase(v1::WorkerStatus::FINISHED));
  EXPECT_EQ(LastStatus().exit_code(), 9);
  EXPECT_EQ(LastStatus().reason(), "stopped on request");
}

constexpr char kTrainsUntilTold[] =
    "trap 'echo stopped >> $LOG; exit 9' TERM; echo started >> $LOG; while :; do sleep 0.1; done";

// scancel, or a container's end: nobody would deliver later what is not delivered now.
TEST_F(AgentTest, DeliversTheEndOfAStepThatIsToldToEndTogetherWithIt) {
  run_.Trainer(kTrainsUntilTold);
  OrderTheRun();
  StartAgent();
  ASSERT_TRUE(AwaitLogLine("started"));

  agent_->TellToLeave();
  Terminate(directory_.StepPath());
  Terminate(directory_.TrainersPath());
  agent_->Join();

  coordinator_.With([](State* s) {
    const auto finished = std::find_if(
        s->requests.begin(), s->requests.end(),
        [](const auto& request) { return request.status().phase() == v1::WorkerStatus::FINISHED; });
    ASSERT_NE(finished, s->requests.end())
        << "the coordinator does not know that the run has ended";
    EXPECT_EQ(finished->status().exit_code(), 9);
    EXPECT_EQ(s->requests.back().status().phase(), v1::WorkerStatus::IDLE);
    EXPECT_TRUE(s->requests.back().is_leaving());
  });
  EXPECT_THAT(Text(), HasSubstr("started\nstopped\n"));
  EXPECT_EQ(Text(), LogFile());
  EXPECT_FALSE(FileExists(directory_.path()));
}

TEST_F(AgentTest, ASecondSignalEndsAnAgentThatCannotDeliver) {
  settle_time_ = absl::ZeroDuration();
  run_.Trainer(kTrainsUntilTold);
  OrderTheRun();
  StartAgent();
  ASSERT_TRUE(AwaitLogLine("started"));

  coordinator_.Stop();
  Terminate(directory_.StepPath());
  while (!FileExists(directory_.ExitPath())) {
  }
  agent_->TellToLeave();
  agent_.reset();  // tells again
  coordinator_.With([](State* s) {
    for (const v1::SynchronizeRequest& request : s->requests)
      EXPECT_NE(request.status().phase(), v1::WorkerStatus::FINISHED);
  });

  coordinator_.Start();
  StartAgent();
  ASSERT_TRUE(coordinator_.Await([](const State& s) {
    return std::any_of(s.requests.begin(), s.requests.end(), [](const auto& request) {
      return request.status().phase() == v1::WorkerStatus::FINISHED &&
             request.status().exit_code() == 9;
    });
  }));
  EXPECT_EQ(Text(), LogFile()) << "the spool keeps what could not be delivered";
}

TEST_F(AgentTest, AKilledStepIsReportedAsSuch) {
  run_.Trainer("while :; do sleep 0.1; done");
  StartAgent();
  Order(v1::DesiredState::EXECUTE);
  while (!FileExists(directory_.TrainersPath())) {
  }
  const absl::StatusOr<ProcessRecord> step = directory_.ReadProcesses(directory_.StepPath());
  ASSERT_THAT(step, IsOk());
  ASSERT_EQ(kill(step->processes.front().pid, SIGKILL), 0);
  ASSERT_TRUE(AwaitPhase(v1::WorkerStatus::FINISHED));
  EXPECT_EQ(LastStatus().exit_code(), 10) << "the node lost it, not the trainer";
  EXPECT_THAT(LastStatus().reason(), HasSubstr("died"));
}

TEST_F(AgentTest, BrokenConnectionsAndARestartedCoordinatorLoseNothing) {
  coordinator_.With([](State* s) {
    s->break_every = 3;
    s->is_broken_after_commit = true;
    s->failing_upload_count = 1;
  });
  run_.Trainer("i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo line $i; done >> $LOG");
  StartAgent();
  Order(v1::DesiredState::EXECUTE);
  ASSERT_TRUE(AwaitPhase(v1::WorkerStatus::EXECUTING));
  coordinator_.Stop();
  while (!FileExists(directory_.ExitPath())) {
  }
  coordinator_.Start();
  ASSERT_TRUE(AwaitPhase(v1::WorkerStatus::FINISHED));
  ExpectSequence();
  EXPECT_EQ(Text(), LogFile());
  EXPECT_THAT(Text(), HasSubstr("line 3000\n"));
}

TEST_F(AgentTest, ABadSpecIsReportedAndStartsNothing) {
  run_.spec.set_ranks_per_node(0);
  StartAgent();
  Order(v1::DesiredState::EXECUTE);
  ASSERT_TRUE(AwaitPhase(v1::WorkerStatus::FINISHED));
  EXPECT_EQ(LastStatus().exit_code(), 2);
  EXPECT_THAT(LastStatus().reason(), HasSubstr("ranks_per_node"));
}

// Only that tells whether all clocks of this machine have stood still.
TEST_F(AgentTest, KeepsItsClockBesideTheCoordinatorsWhileARunGoesOn) {
  const std::vector<ClockSample> samples = ClocksOfARun("offsets.jsonl");
  ASSERT_GE(samples.size(), 2U);
  const int64_t offset_us = samples[0].offset_us;
  for (const ClockSample& sample : samples) {
    EXPECT_EQ(sample.boot_id, "of the coordinator");
    EXPECT_GT(sample.mono_ns, 0);
    // The coordinator is on this machine: its clock gains 600 ppm at most.
    EXPECT_LE(std::abs(sample.offset_us - offset_us),
              samples[0].uncertainty_us + sample.uncertainty_us + 100'000);
  }
}

// By that its telemetry and its touch are carried over to the clock of node 0.
TEST_F(AgentTest, EveryNodeKeepsItsClock) {
  run_.spec.set_node_count(2);
  run_.spec.set_node_rank(1);
  run_.spec.add_hosts("127.0.0.1");
  EXPECT_GE(ClocksOfARun("offsets_1.jsonl").size(), 2U);
  EXPECT_FALSE(coordinator_.With([](State* s) { return s->files.contains("offsets.jsonl"); }));
}

TEST_F(AgentTest, TellsWhoItIsAndItsClockOffset) {
  (*run_.worker.mutable_labels())["rack"] = "r1";
  StartAgent();
  ASSERT_TRUE(coordinator_.Await([](const State& s) { return s.requests.size() >= 3; }));
  coordinator_.With([](State* s) {
    const v1::SynchronizeRequest& request = s->requests.back();
    EXPECT_EQ(request.worker(), "workers/w0");
    EXPECT_EQ(request.incarnation(), "i1");
    EXPECT_EQ(request.poll_timeout().seconds(), 20) << "as long as the API allows";
    EXPECT_EQ(request.labels().at("rack"), "r1");
    EXPECT_THAT(request.system_description_json(), HasSubstr("\"x\""));
    EXPECT_GT(request.clock_offset_uncertainty_us(), 0);
  });
}

}  // namespace
}  // namespace assay::agent
