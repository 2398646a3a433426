#include "server/core/core.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"

namespace assay::core {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using core::testing::Creation;
using core::testing::kSecond;
using core::testing::SomeSpec;
using core::testing::World;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// ----------------------------------------------------------------------------------- submissions

TEST(CoreTest, RunsASubmissionToItsScore) {
  World world;
  SubmissionSpec spec = SomeSpec();
  spec.node_count = 2;
  spec.run_count = 2;
  const SubmissionId id = world.Submit(spec);
  ASSERT_THAT(world.Sync("w0"), IsOk());

  const Desired desired = *world.Sync("w1");

  EXPECT_EQ(desired.action, DesiredAction::kExecute);
  ASSERT_TRUE(desired.order.has_value());
  EXPECT_EQ(desired.order->node_rank, 1);
  EXPECT_EQ(desired.order->seed, 1001);
  EXPECT_EQ(desired.order->rendezvous_address, "w0:7000");
  EXPECT_EQ(desired.order->rendezvous_token.size(), 64u);
  EXPECT_EQ(desired.order->dataset.path, "/data/cosmo32");

  world.Executing("w0", RunId{1});
  EXPECT_EQ(world.run(RunId{1}).state, RunState::kAssigned) << "w1 has not started";
  world.Executing("w1", RunId{1});
  EXPECT_EQ(world.run(RunId{1}).state, RunState::kRunning);
  EXPECT_EQ(world.submission(id).state, SubmissionState::kRunning);
  EXPECT_EQ(world.Finished("w0", RunId{1}).action, DesiredAction::kForget);
  EXPECT_EQ(world.run(RunId{1}).state, RunState::kRunning);
  world.Finished("w1", RunId{1});
  EXPECT_EQ(world.run(RunId{1}).state, RunState::kUploading);
  EXPECT_EQ(world.outcome().effects, std::vector<Effect>{CheckLog{RunId{1}}});
  EXPECT_EQ(world.core().PendingEffects(), std::vector<Effect>{CheckLog{RunId{1}}});
  ASSERT_THAT(world.Do(LogChecked{RunId{1}, {}, ""}), IsOk());
  EXPECT_EQ(world.run(RunId{1}).state, RunState::kSucceeded);
  ASSERT_THAT(world.Sync("w0"), IsOk());
  EXPECT_EQ(world.Sync("w1")->run, RunId{2}) << "both are free, so the next run starts";
  world.Succeed(RunId{2});
  EXPECT_EQ(world.submission(id).state, SubmissionState::kChecking);
  ASSERT_THAT(world.Do(SetScored{id, 12.5, {}, "good"}), IsOk());

  ASSERT_NE(world.Closed(id), nullptr);
  EXPECT_EQ(world.Closed(id)->state, SubmissionState::kValid);
  EXPECT_EQ(world.Closed(id)->score_minutes, 12.5);
  EXPECT_THAT(world.state().submissions, IsEmpty()) << "what has ended leaves memory";
  EXPECT_THAT(world.state().runs, IsEmpty());
}

TEST(CoreTest, CreatesOnceHoweverOftenItIsAsked) {
  World world;

  const auto first = world.Do(Creation(SomeSpec(), "a"));
  const auto again = world.Do(Creation(SomeSpec(), "a"));
  const auto other_person = world.Do(Creation(SomeSpec(), "a"), "bob");

  EXPECT_EQ(std::get<SubmissionReply>(*first).id, SubmissionId{1});
  EXPECT_FALSE(std::get<SubmissionReply>(*first).is_repeated);
  EXPECT_EQ(std::get<SubmissionReply>(*again).id, SubmissionId{1});
  EXPECT_TRUE(std::get<SubmissionReply>(*again).is_repeated);
  EXPECT_TRUE(std::get<SubmissionReply>(*again).submission.has_value());
  EXPECT_EQ(std::get<SubmissionReply>(*other_person).id, SubmissionId{2});
}

struct BadCreation {
  const char* name;
  void (*spoil)(CreateSubmission*);
  absl::StatusCode code;
  const char* message;
};

class RefusalTest : public ::testing::TestWithParam<BadCreation> {};

TEST_P(RefusalTest, SaysWhatIsWrongAndChangesNothing) {
  World world;
  const State before = world.state();
  CreateSubmission command = Creation(SomeSpec(), "a");
  GetParam().spoil(&command);

  const auto reply = world.Do(command);

  EXPECT_THAT(reply, StatusIs(GetParam().code, HasSubstr(GetParam().message)));
  EXPECT_EQ(world.state(), before);
  EXPECT_THAT(world.outcome().events, IsEmpty());
}

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
const BadCreation kBadCreations[] = {
    {"NoRequestId", [](CreateSubmission* c) { c->request_id = ""; }, kInvalid, "request_id"},
    {"NoSystem", [](CreateSubmission* c) { c->spec.system = ""; }, kInvalid, "system"},
    {"LongText", [](CreateSubmission* c) { c->spec.system.assign(5000, 'x'); }, kInvalid, "4096"},
    {"Division", [](CreateSubmission* c) { c->spec.division = "half"; }, kInvalid, "half"},
    {"NoNode", [](CreateSubmission* c) { c->spec.node_count = 0; }, kInvalid, "1 to 4096"},
    {"TooFewRuns", [](CreateSubmission* c) { c->rules.required_run_count = 5; }, kInvalid,
     "expected 5 to"},
    {"ManyHyperparameters", [](CreateSubmission* c) { c->spec.hyperparameters.resize(1001); },
     kInvalid, "1001"},
    {"UnknownDataset", [](CreateSubmission* c) { c->spec.dataset = "x"; },
     absl::StatusCode::kNotFound, "dataset x"},
    {"OtherBenchmark", [](CreateSubmission* c) { c->spec.benchmark = "deepcam"; },
     absl::StatusCode::kFailedPrecondition, "cosmoflow, not deepcam"},
    {"FewSeeds", [](CreateSubmission* c) { c->seeds.clear(); }, absl::StatusCode::kInternal,
     "seeds"},
    {"SameSeeds",
     [](CreateSubmission* c) {
       c->seeds = {7, 7};
     },
     absl::StatusCode::kInternal, "seeds"},
    {"RuleError",
     [](CreateSubmission* c) {
       Finding warning{.rule = "R-W", .severity = Severity::kWarning};
       Finding error{.rule = "R-HP-004",
                     .key = "opt_name",
                     .expected = "sgd",
                     .found = "adam",
                     .remedy = "use sgd"};
       c->findings = {warning, error, error, error, error, error, error};
     },
     kInvalid, "R-HP-004 opt_name: expected sgd, found adam; use sgd"},
};
INSTANTIATE_TEST_SUITE_P(CoreTest, RefusalTest, ::testing::ValuesIn(kBadCreations),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(CoreTest, CancelsQueuedRunsAtOnceAndStopsRunningOnes) {
  World world;
  SubmissionSpec spec = SomeSpec();
  spec.run_count = 2;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  const SubmissionId id = world.Submit(spec);
  world.Executing("w0", RunId{1});

  ASSERT_THAT(world.Do(CancelSubmission{id, "wrong dataset"}), IsOk());

  EXPECT_EQ(world.submission(id).state, SubmissionState::kCancelled);
  EXPECT_EQ(world.submission(id).state_reason, "cancelled by alice: wrong dataset");
  EXPECT_EQ(world.run(RunId{2}).state, RunState::kCancelled);
  EXPECT_EQ(world.Executing("w0", RunId{1}).action, DesiredAction::kStop);
  EXPECT_THAT(world.Do(CancelSubmission{id, ""}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("CANCELLED")));
  EXPECT_EQ(world.Finished("w0", RunId{1}, 9).action, DesiredAction::kForget);
  EXPECT_EQ(world.Sync("w0")->action, DesiredAction::kIdle);
  EXPECT_EQ(world.state().submissions.count(id), 0u);
  EXPECT_THAT(world.Do(CancelSubmission{id, ""}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("has ended")));
  EXPECT_THAT(world.Do(CancelSubmission{SubmissionId{9}, ""}),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(world.Do(CancelSubmission{SubmissionId{0}, ""}),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(CoreTest, ImportsHistoryOnce) {
  World world;
  ImportSubmission import{.spec = SomeSpec(), .source_path = "org/results/sys/cosmoflow"};
  import.runs.resize(3);
  import.score_minutes = 8.0;

  const auto first = world.Do(import);
  const auto again = world.Do(import, "bob");

  const SubmissionReply& reply = std::get<SubmissionReply>(*first);
  EXPECT_EQ(reply.submission->state, SubmissionState::kValid);
  EXPECT_EQ(reply.submission->runs.size(), 3u);
  EXPECT_EQ(std::get<SubmissionReply>(*again).id, reply.id);
  EXPECT_TRUE(std::get<SubmissionReply>(*again).is_repeated);
  EXPECT_THAT(world.state().submissions, IsEmpty());
  EXPECT_THAT(world.Do(ImportSubmission{}), StatusIs(kInvalid));
  import.source_path = "other";
  import.runs.resize(2000);
  EXPECT_THAT(world.Do(import), StatusIs(kInvalid));
}

// ---------------------------------------------------------------------------------- failing runs

TEST(CoreTest, ReplacesARunThatTheInfrastructureFailed) {
  World world;
  SubmissionSpec spec = SomeSpec();
  spec.node_count = 2;
  spec.replacement_count_max = 1;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  ASSERT_THAT(world.Sync("w1"), IsOk());
  const SubmissionId id = world.Submit(spec);
  world.Executing("w0", RunId{1});
  world.Executing("w1", RunId{1});

  world.Finished("w1", RunId{1}, 137);

  EXPECT_EQ(world.run(RunId{1}).state, RunState::kFailed);
  EXPECT_EQ(world.run(RunId{1}).state_reason, "rank 1 on w1: killed by signal 9");
  EXPECT_EQ(world.submission(id).runs.size(), 1u) << "w0 still executes: the cause may be there";
  EXPECT_EQ(world.Executing("w0", RunId{1}).action, DesiredAction::kStop);
  world.Finished("w0", RunId{1}, 9);
  ASSERT_EQ(world.submission(id).runs.size(), 2u);
  EXPECT_EQ(world.run(RunId{2}).seed, 1002);
  EXPECT_EQ(world.run(RunId{2}).number, 2);
  ASSERT_THAT(world.Sync("w0"), IsOk());
  EXPECT_EQ(world.Sync("w1")->run, RunId{2});
  world.Succeed(RunId{2});
  EXPECT_EQ(world.submission(id).state, SubmissionState::kChecking);
}

TEST(CoreTest, ClosesTheSubmissionWhenReplacementsAreUsedUp) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  const SubmissionId id = world.Submit();
  world.Executing("w0", RunId{1});

  world.Finished("w0", RunId{1}, 4);

  ASSERT_NE(world.Closed(id), nullptr);
  EXPECT_EQ(world.Closed(id)->state, SubmissionState::kInvalid);
  EXPECT_THAT(world.Closed(id)->reason, HasSubstr("lost contact with another rank"));
}

TEST(CoreTest, BlamesTheTrainerThatFailedNotThePeerThatNoticed) {
  World world;
  SubmissionSpec spec = SomeSpec();
  spec.node_count = 2;
  spec.replacement_count_max = 5;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  ASSERT_THAT(world.Sync("w1"), IsOk());
  const SubmissionId id = world.Submit(spec);
  world.Executing("w0", RunId{1});
  world.Executing("w1", RunId{1});

  world.Finished("w0", RunId{1}, 4);
  world.Finished("w1", RunId{1}, 7);

  ASSERT_NE(world.Closed(id), nullptr) << "a run that diverges is not repeated";
  EXPECT_THAT(world.Closed(id)->reason, HasSubstr("rank 1 on w1: loss or weights"));
}

TEST(CoreTest, FailsARunWhoseLogCannotBeJudged) {
  World world;
  SubmissionSpec spec = SomeSpec();
  spec.replacement_count_max = 5;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  const SubmissionId id = world.Submit(spec);
  world.Executing("w0", RunId{1});
  world.Finished("w0", RunId{1});

  ASSERT_THAT(world.Do(LogChecked{RunId{1}, {}, "no result_1.txt"}), IsOk());

  EXPECT_EQ(world.Closed(id)->reason, "run r-1 failed: no result_1.txt");
  EXPECT_THAT(world.Do(LogChecked{RunId{1}, {}, ""}), IsOk()) << "a verdict too late is ignored";
  EXPECT_THAT(world.outcome().events, IsEmpty());
}

TEST(CoreTest, FailsARunThatOutlivesItsTimeout) {
  World world;
  SubmissionSpec spec = SomeSpec();
  spec.run_timeout_ms = 60'000;
  spec.replacement_count_max = 5;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  const SubmissionId id = world.Submit(spec);
  world.Executing("w0", RunId{1});

  for (int i = 0; i < 60 * 6 + 1; ++i) {
    world.Wait(kSecond);
    world.Executing("w0", RunId{1});
  }

  EXPECT_EQ(world.run(RunId{1}).state_reason, "ran for longer than its run_timeout");
  world.Finished("w0", RunId{1}, 9);
  EXPECT_EQ(world.Closed(id)->state, SubmissionState::kInvalid);
}

TEST(CoreTest, EndsInvalidWithoutAScore) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  const SubmissionId id = world.Submit();
  world.Succeed(RunId{1}, /*is_converged=*/false);

  ASSERT_THAT(world.Do(SetScored{id, std::nullopt, {Finding{.rule = "R-1"}}, "no score"}), IsOk());

  EXPECT_EQ(world.Closed(id)->state, SubmissionState::kInvalid);
  EXPECT_EQ(world.Closed(id)->findings.size(), 1u);
  EXPECT_THAT(world.Do(SetScored{id, 1.0, {}, ""}), IsOk());
  EXPECT_THAT(world.outcome().events, IsEmpty());
}

// --------------------------------------------------------------------------------------- leases

TEST(CoreTest, SuspectsThenGivesUpASilentWorker) {
  World world;
  SubmissionSpec spec = SomeSpec();
  spec.replacement_count_max = 1;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  const SubmissionId id = world.Submit(spec);
  world.Executing("w0", RunId{1});

  EXPECT_EQ(world.core().NextWakeupUs(), world.now_us() + 10 * kSecond);
  world.Wait(10 * kSecond);
  EXPECT_EQ(world.worker("w0").state, WorkerState::kSuspect);
  EXPECT_EQ(world.run(RunId{1}).state, RunState::kRunning) << "a timed run is not disturbed";
  world.Wait(15 * 60 * kSecond);

  EXPECT_EQ(world.worker("w0").state, WorkerState::kLost);
  EXPECT_EQ(world.run(RunId{1}).state, RunState::kFailed);
  EXPECT_EQ(world.run(RunId{1}).state_reason,
            "unknown: worker w0 was silent for longer than 900 s");
  EXPECT_EQ(world.submission(id).runs.size(), 2u);
  EXPECT_EQ(world.run(RunId{2}).state, RunState::kQueued) << "not repeated on a lost worker";

  // It comes back, still executing: it has to stop, and its end is kept as evidence.
  EXPECT_EQ(world.Executing("w0", RunId{1}).action, DesiredAction::kStop);
  EXPECT_EQ(world.worker("w0").state, WorkerState::kAlive);
  EXPECT_EQ(world.run(RunId{2}).state, RunState::kQueued) << "w0 is not idle yet";
  EXPECT_EQ(world.Finished("w0", RunId{1}, 0).action, DesiredAction::kForget);
  EXPECT_EQ(world.run(RunId{1}).nodes[0].phase, NodePhase::kFinished);
  EXPECT_EQ(world.run(RunId{1}).state, RunState::kFailed) << "the decision stands";
  EXPECT_EQ(world.Sync("w0")->run, RunId{2});
}

TEST(CoreTest, ComesBackFromSilenceWithoutHarm) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  world.Submit();
  world.Executing("w0", RunId{1});
  world.Wait(14 * 60 * kSecond);

  EXPECT_EQ(world.Executing("w0", RunId{1}).action, DesiredAction::kExecute);

  EXPECT_EQ(world.worker("w0").state, WorkerState::kAlive);
  EXPECT_EQ(world.run(RunId{1}).state, RunState::kRunning);
}

TEST(CoreTest, CountsItsOwnAbsenceAsNobodysSilence) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  world.Submit();
  world.Executing("w0", RunId{1});
  const int64_t later_us = world.now_us() + 3600 * kSecond;

  Core restarted({}, world.state(), later_us);
  restarted.Handle({}, later_us + 5 * kSecond);

  EXPECT_EQ(restarted.state().workers.at("w0").state, WorkerState::kAlive);
  EXPECT_EQ(restarted.state().runs.at(RunId{1}).state, RunState::kRunning);
}

TEST(CoreTest, GivesNoRunToAWorkerThatItHasNotHeardSinceItsStart) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  Core restarted({}, world.state(), world.now_us());

  std::vector<Command> commands;
  commands.push_back({"alice", Creation(SomeSpec(), "z")});
  restarted.Handle(std::move(commands), world.now_us());

  EXPECT_EQ(restarted.state().runs.at(RunId{1}).state, RunState::kQueued);
}

TEST(CoreTest, FailsARunThatANewAgentKnowsNothingOf) {
  World world;
  SubmissionSpec spec = SomeSpec();
  spec.replacement_count_max = 1;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  world.Submit(spec);
  world.Executing("w0", RunId{1});

  ASSERT_THAT(world.Sync("w0"), IsOk()) << "an old message of the same agent comes late";
  EXPECT_EQ(world.run(RunId{1}).state, RunState::kRunning);
  world.incarnations["w0"] = "i2";
  const Desired desired = *world.Sync("w0");

  EXPECT_EQ(world.run(RunId{1}).state, RunState::kFailed);
  EXPECT_THAT(world.run(RunId{1}).state_reason, HasSubstr("knows nothing"));
  EXPECT_EQ(desired.run, RunId{2});
  world.incarnations["w0"] = "i1";
  EXPECT_THAT(world.Sync("w0"), StatusIs(absl::StatusCode::kAborted, HasSubstr("i1")));
}

TEST(CoreTest, LetsAnAgentSignOffBeforeItStarts) {
  World world;
  SubmissionSpec spec = SomeSpec();
  spec.replacement_count_max = 1;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  world.Submit(spec);
  ASSERT_EQ(world.run(RunId{1}).state, RunState::kAssigned);

  world.is_leaving = true;
  ASSERT_THAT(world.Sync("w0"), IsOk());

  EXPECT_EQ(world.worker("w0").state, WorkerState::kGone);
  EXPECT_EQ(world.run(RunId{1}).state, RunState::kFailed);
  EXPECT_EQ(world.run(RunId{2}).state, RunState::kQueued);
  ASSERT_THAT(world.Sync("w0"), IsOk());
  EXPECT_THAT(world.outcome().events, IsEmpty()) << "a second farewell is nothing new";
  world.is_leaving = false;
  EXPECT_EQ(world.Sync("w0")->run, RunId{2});
}

TEST(CoreTest, RefusesStrangeWorkers) {
  World world;

  EXPECT_THAT(world.Sync("W 0"), StatusIs(kInvalid));
  world.incarnations["w0"] = "";
  EXPECT_THAT(world.Sync("w0"), StatusIs(kInvalid));
  EXPECT_EQ(world.core().DesiredFor("nobody"), Desired{});
}

TEST(CoreTest, StopsWhatNobodyAskedFor) {
  World world;

  EXPECT_EQ(world.Executing("w0", RunId{77}).action, DesiredAction::kStop);
  EXPECT_EQ(world.Finished("w0", RunId{77}).action, DesiredAction::kForget);
  EXPECT_EQ(world.Sync("w0")->action, DesiredAction::kIdle);
}

TEST(CoreTest, DrainsAndResumes) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  world.Submit();
  world.Submit();
  world.Executing("w0", RunId{1});

  ASSERT_THAT(world.Do(DrainWorker{"w0", "new disk"}, "root"), IsOk());
  ASSERT_THAT(world.Do(DrainWorker{"w0", "again"}, "root"), IsOk());
  EXPECT_EQ(world.worker("w0").state, WorkerState::kDraining);
  EXPECT_EQ(world.worker("w0").state_reason, "new disk");
  world.Succeed(RunId{1});
  EXPECT_EQ(world.run(RunId{2}).state, RunState::kQueued);
  ASSERT_THAT(world.Do(ResumeWorker{"w0"}, "root"), IsOk());

  EXPECT_EQ(world.run(RunId{2}).state, RunState::kAssigned);
  EXPECT_THAT(world.Do(ResumeWorker{"w0"}), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(world.Do(ResumeWorker{"w9"}), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(world.Do(DrainWorker{"w9", ""}), StatusIs(absl::StatusCode::kNotFound));
}

TEST(CoreTest, RemembersADrainThroughSilence) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  world.Wait(20 * 60 * kSecond);
  ASSERT_EQ(world.worker("w0").state, WorkerState::kLost);

  ASSERT_THAT(world.Do(DrainWorker{"w0", "gone"}), IsOk());
  EXPECT_EQ(world.worker("w0").state, WorkerState::kLost);
  ASSERT_THAT(world.Sync("w0"), IsOk());

  EXPECT_EQ(world.worker("w0").state, WorkerState::kDraining);
  world.Wait(20 * 60 * kSecond);
  EXPECT_EQ(world.worker("w0").state, WorkerState::kLost);
  ASSERT_THAT(world.Do(ResumeWorker{"w0"}), IsOk());
  EXPECT_FALSE(world.worker("w0").is_drain_requested);
}

TEST(CoreTest, AsksForAgentsOnce) {
  World world;
  SubmissionSpec spec = SomeSpec();
  spec.node_count = 3;
  ASSERT_THAT(world.Sync("w0"), IsOk());

  world.Submit(spec);

  EXPECT_EQ(world.outcome().effects, std::vector<Effect>{LaunchAgents{2}});
  world.Wait(kSecond);
  EXPECT_THAT(world.outcome().effects, IsEmpty());
  ASSERT_THAT(world.Do(LaunchFinished{2, "no such program"}, "coordinator"), IsOk());
  EXPECT_TRUE(std::holds_alternative<AgentsLaunched>(world.outcome().events[0].event));
}

// --------------------------------------------------------------------------------------- evidence

std::vector<RunEvent> Lines(int64_t first, int64_t last) {
  std::vector<RunEvent> events;
  for (int64_t seq = first; seq <= last; ++seq)
    events.push_back({.seq = seq, .text = absl::StrCat("line ", seq), .wall_us = seq});
  return events;
}

class EvidenceTest : public ::testing::Test {
 protected:
  EvidenceTest() {
    SubmissionSpec spec = SomeSpec();
    spec.node_count = 2;
    EXPECT_THAT(world_.Sync("w0"), IsOk());
    EXPECT_THAT(world_.Sync("w1"), IsOk());
    id_ = world_.Submit(spec);
  }

  absl::StatusOr<int64_t> Append(int32_t rank, std::vector<RunEvent> events,
                                 int64_t generation = 1) {
    const auto reply = world_.Do(
        AppendRunEvents{RunId{1}, generation, rank, std::move(events), absl::StrCat("w", rank)});
    if (!reply.ok()) return reply.status();
    return std::get<AppendReply>(*reply).durable_seq;
  }

  World world_;
  SubmissionId id_;
};

TEST_F(EvidenceTest, TakesEachEventOnce) {
  EXPECT_EQ(*Append(0, Lines(1, 3)), 3);
  EXPECT_EQ(world_.outcome().run_events[0].events.size(), 3u);
  EXPECT_EQ(*Append(0, Lines(1, 3)), 3);
  EXPECT_THAT(world_.outcome().run_events, IsEmpty());
  EXPECT_EQ(*Append(0, Lines(2, 5)), 5);
  const std::vector<RunEvent>& fresh = world_.outcome().run_events[0].events;
  ASSERT_EQ(fresh.size(), 2u);
  EXPECT_EQ(fresh[0].seq, 4);
  EXPECT_EQ(fresh[0].text, "line 4");
  EXPECT_EQ(fresh[0].order, 4);
  EXPECT_EQ(*Append(1, Lines(1, 1)), 1);
  EXPECT_EQ(world_.outcome().run_events[0].events[0].order, 6);
  EXPECT_EQ(world_.outcome().run_events[0].events[0].node_rank, 1);
  EXPECT_EQ(*Append(0, {}), 5) << "an empty batch asks how far it is";
}

TEST_F(EvidenceTest, RefusesGapsAndStrangers) {
  EXPECT_THAT(Append(0, Lines(2, 3)),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("continue at seq 1, not 2")));
  EXPECT_THAT(Append(0, Lines(1, 3), 2), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(Append(2, Lines(1, 3)), StatusIs(kInvalid));
  EXPECT_THAT(Append(-1, Lines(1, 3)), StatusIs(kInvalid));
  EXPECT_THAT(Append(0, Lines(0, 3)), StatusIs(kInvalid));
  EXPECT_THAT(Append(0, {Lines(1, 1)[0], Lines(3, 3)[0]}), StatusIs(kInvalid));
  EXPECT_THAT(Append(0, Lines(1, 1001)), StatusIs(kInvalid, HasSubstr("1000")));
  EXPECT_THAT(world_.Do(AppendRunEvents{RunId{1}, 1, 0, Lines(1, 1), "w1"}),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(world_.Do(AppendRunEvents{RunId{9}, 1, 0, Lines(1, 1), "w0"}),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(EvidenceTest, KeepsTheEarliestTouch) {
  std::vector<RunEvent> events = Lines(1, 2);
  events[1].kind = RunEventKind::kFirstTouch;
  events[1].wall_us = 500;
  ASSERT_THAT(Append(0, events), IsOk());
  events[1].wall_us = 300;

  ASSERT_THAT(Append(1, events), IsOk());

  EXPECT_EQ(world_.run(RunId{1}).first_touch_us, 300);
}

TEST_F(EvidenceTest, TakesEvidenceOfARunThatHasLeftMemory) {
  ASSERT_THAT(world_.Do(CancelSubmission{id_, ""}), IsOk());
  const core::Run run = world_.run(RunId{1});
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  ASSERT_THAT(world_.Sync("w1"), IsOk());
  ASSERT_THAT(world_.state().runs, IsEmpty());
  const Command late{"w0", AppendRunEvents{RunId{1}, 1, 0, Lines(1, 2), "w0"}};

  ASSERT_EQ(world_.core().MissingRun(late), RunId{1});
  world_.core().Restore(run);
  EXPECT_EQ(*Append(0, Lines(1, 2)), 2);

  EXPECT_THAT(world_.state().runs, IsEmpty());
  EXPECT_EQ(world_.core().MissingRun({"", RecordArtifact{RunId{1}}}), RunId{1});
  EXPECT_EQ(world_.core().MissingRun({"", RecordArtifact{RunId{99}}}), std::nullopt);
  EXPECT_EQ(world_.core().MissingRun({"", Tick{}}), std::nullopt);
}

TEST_F(EvidenceTest, RecordsArtifactsOnce) {
  const std::string digest(64, 'a');
  const RecordArtifact good{RunId{1}, 1, {"result_1.txt", digest, 10}, "w0"};

  ASSERT_THAT(world_.Do(good), IsOk());
  ASSERT_THAT(world_.Do(good), IsOk());
  EXPECT_EQ(world_.run(RunId{1}).artifacts.size(), 1u);

  RecordArtifact other = good;
  other.artifact.sha256 = std::string(64, 'b');
  EXPECT_THAT(world_.Do(other), StatusIs(absl::StatusCode::kAlreadyExists));
  other.worker = "w9";
  EXPECT_THAT(world_.Do(other), StatusIs(absl::StatusCode::kPermissionDenied));
  for (const ArtifactRef& bad : {ArtifactRef{"a/b", digest, 1}, ArtifactRef{"", digest, 1},
                                 ArtifactRef{"a", "xyz", 1}, ArtifactRef{"a", digest, -1}})
    EXPECT_THAT(world_.Do(RecordArtifact{RunId{1}, 1, bad, ""}), StatusIs(kInvalid));
}

// --------------------------------------------------------------------------------- administration

CreateToken SomeToken() {
  return CreateToken{.request_id = "t",
                     .kind = TokenKind::kAccess,
                     .role = "submitter",
                     .principal = "bob",
                     .organization = "lab",
                     .secret_sha256 = std::string(64, '1'),
                     .expires_at_us = testing::kStart + 100 * kSecond};
}

TEST(TokenTest, AreCreatedOnceAndRevoked) {
  World world;

  const auto token = world.Do(SomeToken());
  EXPECT_EQ(std::get<Token>(*token).id, TokenId{1});
  EXPECT_THAT(world.Do(SomeToken()), StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("t-1")));
  EXPECT_THAT(world.Do(Creation(SomeSpec(), "t")), StatusIs(absl::StatusCode::kAlreadyExists));
  ASSERT_THAT(world.Do(RevokeToken{TokenId{1}}), IsOk());
  ASSERT_THAT(world.Do(RevokeToken{TokenId{1}}), IsOk());

  EXPECT_TRUE(world.state().tokens.at(TokenId{1}).is_revoked);
  EXPECT_THAT(world.Do(RevokeToken{TokenId{2}}), StatusIs(absl::StatusCode::kNotFound));
}

TEST(TokenTest, RefusesNonsense) {
  World world;
  CreateToken token = SomeToken();
  token.role = "king";
  EXPECT_THAT(world.Do(token), StatusIs(kInvalid));
  token = SomeToken();
  token.kind = TokenKind::kEnrol;
  EXPECT_THAT(world.Do(token), StatusIs(kInvalid));
  token = SomeToken();
  token.principal = "";
  EXPECT_THAT(world.Do(token), StatusIs(kInvalid));
  token = SomeToken();
  token.organization = "";
  EXPECT_THAT(world.Do(token), StatusIs(kInvalid));
  token = SomeToken();
  token.expires_at_us = 1;
  EXPECT_THAT(world.Do(token), StatusIs(kInvalid));
  token = SomeToken();
  token.secret_sha256 = "";
  EXPECT_THAT(world.Do(token), StatusIs(absl::StatusCode::kInternal));
}

TEST(TokenTest, EnrolsOneWorkerOnce) {
  World world;
  CreateToken token = SomeToken();
  token.kind = TokenKind::kEnrol;
  token.role = "worker";
  token.principal = "w1";
  ASSERT_THAT(world.Do(token), IsOk());
  const auto denied = StatusIs(absl::StatusCode::kPermissionDenied);

  EXPECT_THAT(world.Do(RedeemEnrolment{std::string(64, '2'), "w1"}), denied);
  EXPECT_THAT(world.Do(RedeemEnrolment{std::string(64, '1'), "w2"}), denied);
  EXPECT_THAT(world.Do(RedeemEnrolment{std::string(64, '1'), "w1"}), IsOk());
  EXPECT_THAT(world.Do(RedeemEnrolment{std::string(64, '1'), "w1"}), denied);

  token.request_id = "u";
  token.secret_sha256 = std::string(64, '3');
  ASSERT_THAT(world.Do(token), IsOk());
  world.Wait(101 * kSecond);
  EXPECT_THAT(world.Do(RedeemEnrolment{std::string(64, '3'), "w1"}), denied);
}

TEST(DatasetTest, AreAddedAndRemovedUnlessInUse) {
  World world;
  Dataset dataset = testing::SomeDataset();
  EXPECT_THAT(world.Do(AddDataset{dataset}), IsOk());
  dataset.path = "/other";
  EXPECT_THAT(world.Do(AddDataset{dataset}), StatusIs(absl::StatusCode::kAlreadyExists));
  dataset.id = "x";
  dataset.path = "relative";
  EXPECT_THAT(world.Do(AddDataset{dataset}), StatusIs(kInvalid));
  dataset.benchmark = "";
  EXPECT_THAT(world.Do(AddDataset{dataset}), StatusIs(kInvalid));
  const SubmissionId id = world.Submit();

  EXPECT_THAT(world.Do(RemoveDataset{"cosmo32"}), StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_THAT(world.Do(CancelSubmission{id, ""}), IsOk());
  EXPECT_THAT(world.Do(RemoveDataset{"cosmo32"}), IsOk());
  EXPECT_THAT(world.Do(RemoveDataset{"cosmo32"}), StatusIs(absl::StatusCode::kNotFound));
}

TEST(CoreTest, CountsForTheServerInfo) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  world.Submit();

  const auto info = std::get<ServerInfo>(*world.Do(GetServerInfo{}));
  const auto workers = std::get<WorkersReply>(*world.Do(ListWorkers{}));

  EXPECT_EQ(info.submission_count, 1);
  EXPECT_EQ(info.worker_count, 1);
  EXPECT_EQ(info.last_seq, world.state().last_seq);
  ASSERT_EQ(workers.workers.size(), 1u);
  EXPECT_EQ(workers.workers[0].presence.last_seen_us, world.now_us());
}

TEST(CoreTest, TimeNeverRunsBackwards) {
  World world;
  Core& core = world.core();

  core.Handle({}, world.now_us() + 5 * kSecond);
  const Outcome outcome = core.Handle({{"alice", Creation(SomeSpec(), "a")}}, world.now_us());

  EXPECT_EQ(outcome.events[0].at_us, world.now_us() + 5 * kSecond);
}

TEST(CoreTest, TheLogFoldsToTheState) {
  World world;
  SubmissionSpec spec = SomeSpec();
  spec.node_count = 2;
  spec.run_count = 2;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  ASSERT_THAT(world.Sync("w1"), IsOk());
  ASSERT_THAT(world.Do(SomeToken()), IsOk());
  world.Submit(spec);
  world.Succeed(RunId{1});
  world.Executing("w0", RunId{2});

  EXPECT_EQ(world.Fold(), world.state());
}

}  // namespace
}  // namespace assay::core
