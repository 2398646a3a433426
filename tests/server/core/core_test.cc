#include "server/core/core.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"

namespace assay::core {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using core::testing::Creation;
using core::testing::kInvalid;
using core::testing::kSecond;
using core::testing::SomeSpec;
using core::testing::SomeToken;
using core::testing::World;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

TEST(CoreTest, ProgramsAreToldHowTheBatchSystemCallsTheirNodes) {
  for (const bool are_all_named : {true, false}) {
    World world;
    SubmissionSpec spec = SomeSpec();
    spec.node_count = 2;
    spec.division = "open";
    spec.workload = CommandWorkload{
        .command = {"train"}, .launcher = "srun", .log = "file", .stop_grace_s = 10};
    world.labels["w0"] = {{std::string(kNodeLabel), "n7"}};
    if (are_all_named) world.labels["w1"] = {{std::string(kNodeLabel), "n3"}};
    world.Submit(spec);
    ASSERT_THAT(world.Sync("w0"), IsOk());

    const Desired desired = *world.Sync("w1");

    ASSERT_TRUE(desired.order.has_value());
    EXPECT_EQ(desired.order->hosts, (std::vector<std::string>{"w0", "w1"}));
    if (are_all_named)
      EXPECT_EQ(desired.order->node_names, (std::vector<std::string>{"n7", "n3"}));
    else
      EXPECT_THAT(desired.order->node_names, IsEmpty()) << "no names rather than some";
  }
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
     absl::StatusCode::kNotFound, "found x"},
    {"OtherBenchmark", [](CreateSubmission* c) { c->spec.benchmark = "deepcam"; },
     absl::StatusCode::kFailedPrecondition, "which is of cosmoflow"},
    {"FewSeeds", [](CreateSubmission* c) { c->seeds.clear(); }, absl::StatusCode::kInternal,
     "seeds"},
    {"SameSeeds",
     [](CreateSubmission* c) {
       c->seeds = {7, 7};
     },
     absl::StatusCode::kInternal, "seeds"},
    {"RuleError",
     [](CreateSubmission* c) {
       Finding warning{.rule_id = "R-W", .severity = Severity::kWarning};
       Finding error{.rule_id = "R-HP-004",
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

// Goal: people can say something about what ended long ago, and nothing else of it changes.
TEST(CoreTest, ASubmissionThatHasEndedIsNotedOn) {
  World world;
  ImportSubmission import{.spec = SomeSpec(), .source_path = "org/results/sys/cosmoflow"};
  import.runs.resize(2);
  import.score_minutes = 8.0;
  const SubmissionId id = std::get<SubmissionReply>(*world.Do(import)).id;
  ASSERT_THAT(world.state().submissions, IsEmpty());

  const NoteSubmission note{.request_id = "n", .submission = id, .text = "the switch was broken"};
  const auto noted = world.Do(note, "rita");
  ASSERT_THAT(noted, IsOk());
  EXPECT_THAT(world.state().submissions, IsEmpty()) << "it leaves memory again";
  EXPECT_THAT(world.state().runs, IsEmpty());
  EXPECT_TRUE(std::get<SubmissionReply>(*world.Do(note, "rita")).is_repeated);
  ASSERT_THAT(world.Do(NoteSubmission{.submission = id, .text = "so it was"}, "bob"), IsOk());

  ASSERT_TRUE(world.outcome().replies[0].ok());
  const Submission& submission = *std::get<SubmissionReply>(*world.outcome().replies[0]).submission;
  ASSERT_EQ(submission.notes.size(), 2u);
  EXPECT_EQ(submission.notes[0].author, "rita");
  EXPECT_EQ(submission.notes[0].text, "the switch was broken");
  EXPECT_EQ(submission.notes[1].author, "bob");
  EXPECT_EQ(submission.state, SubmissionState::kValid);
  EXPECT_EQ(submission.score_minutes, 8.0);
  EXPECT_EQ(world.Fold(), world.state());

  EXPECT_THAT(world.Do(NoteSubmission{.submission = id, .text = " \n"}), StatusIs(kInvalid));
  EXPECT_THAT(world.Do(NoteSubmission{.submission = SubmissionId{9}, .text = "x"}),
              StatusIs(absl::StatusCode::kNotFound));
  for (size_t n = 2; n < kNoteCountMax; ++n)
    ASSERT_THAT(world.Do(NoteSubmission{.submission = id, .text = "again"}), IsOk());
  EXPECT_THAT(world.Do(NoteSubmission{.submission = id, .text = "one more"}),
              StatusIs(absl::StatusCode::kResourceExhausted));
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

// Two people of one name, who choose the same request_id.
TEST(CoreTest, ARequestIsThatOfItsOrganizationAndRole) {
  World world;
  std::set<SubmissionId> made;
  const Standing standings[] = {{"submitter", "lab"}, {"submitter", "rival"}, {"operator", ""}};
  for (int round = 0; round < 2; ++round) {
    std::vector<Command> commands;
    for (const Standing& standing : standings)
      commands.push_back(
          {.principal = "ci", .body = Creation(SomeSpec(), "nightly"), .standing = standing});
    world.Handle(std::move(commands));
    for (const absl::StatusOr<Reply>& reply : world.outcome().replies) {
      ASSERT_TRUE(reply.ok());
      const auto& answer = std::get<SubmissionReply>(*reply);
      EXPECT_EQ(answer.is_repeated, round == 1);
      made.insert(answer.id);
    }
  }

  EXPECT_EQ(made.size(), 3u);
}

TEST(CoreTest, WhatIsChosenAmongFewIsOneOfThem) {
  World world;
  const std::pair<const char*, void (*)(SubmissionSpec*, std::string)> fields[] = {
      {"division", [](SubmissionSpec* s, std::string text) { s->division = std::move(text); }},
      {"backend", [](SubmissionSpec* s, std::string text) { s->workload = TrainerWorkload{text}; }},
      {"status", [](SubmissionSpec* s, std::string text) { s->status = std::move(text); }},
      {"staging", [](SubmissionSpec* s, std::string text) { s->staging = std::move(text); }}};
  for (const auto& [name, set] : fields) {
    SubmissionSpec spec = SomeSpec();
    set(&spec, "evil\x1b");
    const absl::StatusOr<Reply> reply = world.Do(Creation(spec, name));
    EXPECT_EQ(reply.status().code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_NE(reply.status().message().find(std::string(name) + " is \"evil\\x1b\": choose "),
              absl::string_view::npos)
        << reply.status();
  }
}

}  // namespace
}  // namespace assay::core
