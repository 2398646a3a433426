#include "server/store/codec.h"

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"

namespace assay::store {
namespace {

using namespace core;  // NOLINT(build/namespaces): names of two dozen events
using ::assay::testing::IsOk;
using ::assay::testing::IsOkAndHolds;
using ::assay::testing::StatusIs;
using ::testing::HasSubstr;

core::Submission SomeSubmission() {
  core::Submission submission;
  submission.id = SubmissionId{4};
  submission.spec = core::testing::SomeSpec();
  submission.spec.hyperparameters = {{"opt_name", "\"sgd\""}, {"x", "[1, 2]"}};
  submission.spec.worker_labels = {{"rack", "a"}, {std::string("nul\0key", 7), "\"\\\n"}};
  submission.rules.quality_target = 0.124;
  submission.rules.rule_set_toml = "[round]\nname = \"x\"\n";
  submission.state = SubmissionState::kInvalid;
  submission.score_minutes = 1.0 / 3;
  submission.throughput = Throughput{637, 11, 128, 495.66063333333335};
  submission.runs = {RunId{1}, RunId{2}};
  submission.seeds = {1, std::numeric_limits<int64_t>::max()};
  submission.findings = {Finding{"R-1", Severity::kWarning, "c", 3, "k", "e", "f\x01", "s", "r"}};
  submission.spec.borrowing = Borrowing{SubmissionId{2}, SubmissionId{3}};
  submission.borrowing = BorrowingRecord{7, 8, {{"opt_name", "", "\"sgd\"", "borrowed"}}};
  submission.convergence = Convergence{true, "Pass", "RCP found", 1.25, 22.0, 21.1, 0.5, 12.5, ""};
  return submission;
}

core::Run SomeRun() {
  core::Run run;
  run.id = RunId{7};
  run.submission = SubmissionId{4};
  run.state = RunState::kSucceeded;
  run.exit_code = -1;
  run.first_touch = core::GangTouch{.at_us = 123, .uncertainty_us = 4};
  run.observed_touch = core::GangTouch{.at_us = 99, .uncertainty_us = 5};
  run.facts.is_converged = false;
  run.facts.quality = std::numeric_limits<double>::infinity();
  run.facts.instance_scale = 128;
  run.artifacts = {{"result_1.txt", "ab", 1LL << 40}};
  return run;
}

// One of each kind, with members that are not at their defaults.
std::vector<Event> OneOfEach() {
  const WorkerDescription description{
      "i1", {"host", 8, 1 << 30, 1, "gpu", {"onednn"}, "h:1"}, {{"a", "b"}}, "{\"x\": 1}", "1.0"};
  const Token token{TokenId{3}, TokenKind::kEnrol, "worker", "w0", "lab", "hash", 1, 2, true};
  const core::Submission submission = SomeSubmission();
  return {
      SubmissionCreated{SubmissionId{4},
                        "uuid",
                        submission.spec,
                        submission.rules,
                        submission.findings,
                        {5, 6},
                        RunId{9},
                        submission.borrowing},
      SubmissionImported{submission, {SomeRun(), SomeRun()}},
      SubmissionCheckStarted{SubmissionId{4}},
      SubmissionClosed{SubmissionId{4}, SubmissionState::kValid, "good", 2.5, submission.findings,
                       submission.convergence},
      SubmissionNoted{SubmissionId{4}, "uuid", "odd", {"reviewer", ""}},
      core::SubmissionPublished{SubmissionId{4}, 99},
      core::SubmissionWithdrawn{SubmissionId{4}, "by alice"},
      InstancesPruned{SubmissionId{4}, {RunId{7}}, {3, 1, 16, 2.5, 2.4, 0.5, 8}, {}, "better"},
      RunQueued{RunId{8}, SubmissionId{4}, RunId{7}},
      RunAssigned{RunId{8}, 2, {"w0", "w1"}, AllocationId{2}, {"w1"}},
      NodeStarted{RunId{8}, 1, -5, 6},
      RunStarted{RunId{8}},
      NodeFinished{RunId{8}, 1, 137, "killed"},
      NodeGivenUp{RunId{8}, 1},
      RunUploaded{RunId{8}},
      RunJudged{RunId{8}, SomeRun().facts},
      RunFailed{RunId{8}, "why", 3, false},
      RunFailureExplained{RunId{8}, "rank 1", 137},
      RunCancelled{RunId{8}, "because"},
      RunEventsAppended{RunId{8}, 1, 10, 20, 99},
      ArtifactRecorded{RunId{8}, {"f", "ab", 3}},
      WorkerRegistered{"w0", description},
      WorkerDescribed{"w0", description},
      WorkerStateChanged{"w0", WorkerState::kLost, "silent", true},
      WorkerRevoked{"w0", 2, "stolen"},
      core::WorkerLabelled{"w0", {{"rack", "7"}}},
      WorkerReleased{"w0", RunId{8}},
      PreflightStarted{"w0", SubmissionId{4}, {{"memory", CheckPolicy::kGate}}, 80, 5, 6},
      PreflightFinished{"w0",
                        SubmissionId{4},
                        PreflightState::kFailed,
                        "why",
                        "A, 2 cores",
                        {{"memory", CheckPolicy::kWarn, true, 1.5, "GB/s", "how", 2.5, "slow"}}},
      TokenCreated{"uuid", token},
      TokenRevoked{TokenId{3}, "w0"},
      DatasetAdded{core::testing::SomeDataset()},
      DatasetRemoved{"cosmo32"},
      core::ViewSaved{{"fast",
                       "ann",
                       {"reviewer", ""},
                       true,
                       "run",
                       "minutes<3",
                       "minutes",
                       {"id"},
                       {"round"},
                       {"count"},
                       7}},
      core::ViewRemoved{"fast", {"reviewer", ""}},
      core::StoreBackedUp{"/srv/backup", 12, 3, 1},
      core::CallsRefused{{"mallory", "ipv4:10.0.0.9", "CreateToken", "is reader", 3, 1000}},
      core::ArtifactsPruned{SubmissionId{4}, "telemetry_days: 365", {{RunId{7}, {"f", "ab", 3}}}},
      CacheOrdered{"w0", CacheAction::kEvict, "cosmo32", "/data/cosmo32", "ab"},
      CacheOrderEnded{"w0", 7, "no space"},
      CacheOrderPostponed{"w0", 7, "held by a run", 9},
      CacheOrderRetried{"w0", 7},
      AllocationRequested{AllocationId{2},
                          {"local", 3, {{"a", "b"}}, SubmissionId{4}, 5},
                          "why",
                          "uuid",
                          {"operator", ""}},
      AllocationGranted{AllocationId{2}, {"w0"}, 9, {"n0"}},
      AllocationSubmitted{AllocationId{2}, "4711"},
      NodeEnrolled{AllocationId{2}, "a2-0", "n0"},
      AllocationLaunchFailed{AllocationId{2}, "error", 8},
      AllocationActivated{AllocationId{2}},
      AllocationReleasing{AllocationId{2}, "why"},
      AllocationEnded{AllocationId{2}, "why"},
      WorkerJoined{"w0", AllocationId{2}},
      WorkerForgotten{"w0"},
      TokensForgotten{{TokenId{3}}},
      RequestsForgotten{{{{"submitter", "lab"}, "alice", "uuid"}}},
      DataLossAccepted{3, 4, 5, 6, 7, "the log was damaged"},
  };
}

TEST(CodecTest, ReadsBackEveryKindOfEvent) {
  std::set<size_t> kinds;
  for (const Event& event : OneOfEach()) {
    const std::string body = EncodeEvent(event);
    EXPECT_THAT(DecodeEvent(TypeOf(event), 1, body), IsOkAndHolds(event)) << body;
    kinds.insert(event.index());
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<Event>);
}

TEST(CodecTest, ReadsBackRows) {
  EXPECT_THAT(DecodeSubmission(Encode(SomeSubmission())), IsOkAndHolds(SomeSubmission()));
  EXPECT_THAT(DecodeRun(Encode(SomeRun())), IsOkAndHolds(SomeRun()));
  core::Worker worker{.name = "w0",
                      .state = WorkerState::kDraining,
                      .run = RunId{3},
                      .certificate_generation = 2,
                      .certificates_revoked_at_us = 5,
                      .allocation = core::AllocationId{2},
                      .is_forgotten = true};
  EXPECT_THAT(DecodeWorker(Encode(worker)), IsOkAndHolds(worker));
  const core::Allocation allocation{.id = core::AllocationId{2},
                                    .spec = {.launcher = "local", .node_count = 2},
                                    .state = core::AllocationState::kReleasing,
                                    .state_reason = "why",
                                    .requested_by = "olga",
                                    .created_at_us = 1,
                                    .granted_at_us = 2,
                                    .ended_at_us = 3,
                                    .deadline_us = 4,
                                    .workers = {"w0"},
                                    .failure_count = 5,
                                    .last_error = "none",
                                    .retry_at_us = 6};
  EXPECT_THAT(DecodeAllocation(Encode(allocation)), IsOkAndHolds(allocation));
}

// A reader that rounds the last bit gives a quality that is not the log's.
TEST(CodecTest, KeepsEveryBitOfAQuality) {
  core::Run run = SomeRun();
  for (const double quality : {0.36060665031891403, 0.1, 5e-324, 1.7976931348623157e308}) {
    run.facts.quality = quality;
    EXPECT_THAT(DecodeRun(Encode(run)), IsOkAndHolds(run)) << quality;
  }
}

TEST(CodecTest, KeepsNumbersThatJsonHasNot) {
  core::Run run = SomeRun();
  run.facts.quality = std::numeric_limits<double>::quiet_NaN();

  const auto decoded = DecodeRun(Encode(run));

  ASSERT_THAT(decoded, IsOk());
  EXPECT_TRUE(std::isnan(*decoded->facts.quality));
  EXPECT_THAT(Encode(run), HasSubstr("\"quality\":\"nan\""));
}

TEST(CodecTest, IsReadableInAShell) {
  EXPECT_EQ(
      EncodeEvent(RunAssigned{RunId{8}, 2, {"w0", "w1"}, AllocationId{1}}),
      R"({"run":"r-8","generation":2,"workers":["w0","w1"],"allocation":"a-1","cached_workers":[]})");
  EXPECT_EQ(EncodeEvent(WorkerStateChanged{"w0", WorkerState::kLost, "", false}),
            R"({"worker":"w0","state":"LOST","reason":"","is_drain_requested":false})");
}

TEST(CodecTest, SaysWhatDoesNotFit) {
  constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
  EXPECT_THAT(DecodeEvent("NoSuchThing", 1, "{}"), StatusIs(kDataLoss, HasSubstr("NoSuchThing")));
  EXPECT_THAT(DecodeEvent("RunStarted", 1, "{}"), StatusIs(kDataLoss, HasSubstr("\"run\" is")));
  EXPECT_THAT(DecodeEvent("RunStarted", 2, R"({"run":"r-1"})"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("newer")));
  for (const char* body : {"", "[]", "3", "{", R"({"run":1})", R"({"run":"e-1"})",
                           R"({"run":"r-0"})", R"({"run":"r--1"})", R"({"run":null})"})
    EXPECT_THAT(DecodeEvent("RunStarted", 1, body), StatusIs(kDataLoss)) << body;
  EXPECT_THAT(DecodeFinding(std::string(100000, '[')), StatusIs(kDataLoss));
  EXPECT_THAT(
      DecodeEvent("WorkerStateChanged", 1,
                  R"({"worker":"w","state":"DEAD","reason":"","is_drain_requested":false})"),
      StatusIs(kDataLoss, HasSubstr("state")));
}

TEST(CodecTest, IgnoresMembersOfLaterVersions) {
  EXPECT_THAT(DecodeEvent("RunStarted", 1, R"({"new":[1,{}],"run":"r-1"})"),
              IsOkAndHolds(Event(RunStarted{RunId{1}})));
}

// What was written before throughputs, borrowings and reference points were known is still read.
TEST(CodecTest, ReadsRowsOfEarlierVersions) {
  core::Submission submission = SomeSubmission();
  submission.throughput.reset();
  submission.borrowing.reset();
  submission.convergence.reset();
  submission.findings[0].section = "";
  submission.spec.borrowing.reset();
  std::string body = Encode(submission);
  for (const std::string added :
       {",\"throughput\":null", ",\"borrowing\":null", ",\"borrowing\":null",
        ",\"convergence\":null", ",\"section\":\"\""}) {
    ASSERT_THAT(body, HasSubstr(added));
    body.erase(body.find(added), added.size());
  }

  EXPECT_THAT(DecodeSubmission(body), IsOkAndHolds(submission));
}

}  // namespace
}  // namespace assay::store
