// The service as its users meet it: a real assayd, over its Unix socket and over TLS.

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/descriptor.h"

#include "common/file.h"
#include "common/secret.h"
#include "common/sha256.h"
#include "server/auth/permissions.h"
#include "tests/integration/deployment.h"
#include "tests/integration/fake_worker.h"
#include "tests/integration/service_fixture.h"
#include "tests/support/status_matchers.h"

namespace assay::testing {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Property;
using ::testing::SizeIs;

TEST_F(ServiceTest, TheSameRequestGivesTheSameSubmission) {
  const auto first = Create(&*root_, TinySpec("Org", 1), "request-1");
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(first->name(), "submissions/e-1");
  EXPECT_EQ(first->state(), v1::Submission::OPEN);
  EXPECT_THAT(first->runs(), SizeIs(3));

  EXPECT_EQ(Create(&*root_, TinySpec("Org", 1), "request-1")->name(), first->name());
  EXPECT_NE(Create(&*root_, TinySpec("Org", 1), "request-2")->name(), first->name());
}

TEST_F(ServiceTest, ABadRequestIsToldWhatIsWrongWithIt) {
  v1::SubmissionSpec spec = TinySpec("Org", 1);
  spec.set_round("hpc-9");
  EXPECT_THAT(Create(&*root_, spec), Not(IsOk()));
  spec = TinySpec("Org", 1);
  spec.set_dataset("nowhere");
  EXPECT_THAT(Create(&*root_, spec), StatusIs(absl::StatusCode::kNotFound, HasSubstr("nowhere")));
  EXPECT_THAT(Create(&*root_, TinySpec("Org", 1), ""),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("request_id")));
  v1::GetSubmissionRequest get;
  get.set_name("e-1");
  EXPECT_THAT(root_->Call(root_->submission(), &Submissions::GetSubmission, get),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("submissions/e-42")));
}

TEST_F(ServiceTest, AGridThatCannotWorkIsRefusedBeforeAnythingIsQueued) {
  v1::SubmissionSpec spec = TinySpec("Org", 2);
  v1::Hyperparameter* const grid = spec.add_hyperparameters();
  grid->set_key("spatial_grid");
  grid->set_json_value("[3, 1]");
  v1::PlanSubmissionRequest plan;
  *plan.mutable_spec() = spec;

  const auto planned = root_->Call(root_->submission(), &Submissions::PlanSubmission, plan);

  ASSERT_THAT(planned, IsOk());
  EXPECT_THAT(planned->findings(), Contains(Property(&v1::Finding::rule, "R-RNK-004")));
  EXPECT_THAT(Create(&*root_, spec),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("R-RNK-004 spatial_grid: expected a number of ranks")));
}

TEST_F(ServiceTest, ListsNewestFirstPageByPage) {
  std::vector<std::string> created;
  for (int i = 0; i < 5; ++i)
    created.push_back(Create(&*root_, TinySpec("Org", 1))->name());

  std::vector<std::string> listed;
  v1::ListSubmissionsRequest request;
  request.set_page_size(2);
  do {
    const auto page = root_->Call(root_->submission(), &Submissions::ListSubmissions, request);
    ASSERT_THAT(page, IsOk());
    EXPECT_LE(page->submissions_size(), 2);
    for (const v1::Submission& submission : page->submissions())
      listed.push_back(submission.name());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());

  EXPECT_THAT(listed, ::testing::ElementsAreArray(created.rbegin(), created.rend()));
  request.set_page_size(1001);
  EXPECT_THAT(root_->Call(root_->submission(), &Submissions::ListSubmissions, request),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ServiceTest, CancellingEndsASubmissionOnceAndSaysWhy) {
  const std::string name = Create(&*root_, TinySpec("Org", 1))->name();
  v1::CancelSubmissionRequest request;
  request.set_name(name);
  request.set_reason("wrong machine");
  const auto cancelled = root_->Call(root_->submission(), &Submissions::CancelSubmission, request);
  ASSERT_THAT(cancelled, IsOk());
  EXPECT_EQ(cancelled->state(), v1::Submission::CANCELLED);
  EXPECT_THAT(cancelled->state_reason(), HasSubstr("wrong machine"));
  EXPECT_THAT(root_->Call(root_->submission(), &Submissions::CancelSubmission, request),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  request.set_name("submissions/e-99");
  EXPECT_THAT(root_->Call(root_->submission(), &Submissions::CancelSubmission, request),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(ServiceTest, AWatchGoesOnFromAnEventNumberAndEndsWithTheSubmission) {
  const std::string name = Create(&*root_, TinySpec("Org", 1))->name();
  const std::vector<v1::Event> before = Watch(&*root_, name, 0);
  ASSERT_THAT(before, Not(IsEmpty()));
  EXPECT_EQ(before[0].type(), "SubmissionCreated");
  EXPECT_EQ(before[0].principal(), "root");

  // A follower sees what comes, and is let go when nothing more can come.
  v1::WatchEventsRequest request;
  request.set_submission(name);
  request.set_after_seq(before.back().seq());
  request.set_follow(true);
  grpc::ClientContext context;
  PrepareCall(root_->endpoint(), absl::Seconds(60), &context);
  const auto reader = root_->submission().WatchEvents(&context, request);
  v1::CancelSubmissionRequest cancel;
  cancel.set_name(name);
  ASSERT_THAT(root_->Call(root_->submission(), &Submissions::CancelSubmission, cancel), IsOk());

  std::vector<std::string> types;
  v1::Event event;
  while (reader->Read(&event)) {
    EXPECT_GT(event.seq(), before.back().seq());
    types.push_back(event.type());
  }
  EXPECT_THAT(FromGrpc(reader->Finish()), IsOk());
  EXPECT_THAT(types,
              ElementsAre("RunCancelled", "RunCancelled", "RunCancelled", "SubmissionClosed"));
}

TEST_F(ServiceTest, ASubmitterSeesItsOwnOrganizationAndNoOther) {
  Client fjord = WithToken("submitter", "Fjord");
  Client rival = WithToken("submitter", "Rival");
  const auto created = Create(&fjord, TinySpec("Fjord", 1));
  ASSERT_THAT(created, IsOk());
  EXPECT_EQ(created->submitter(), "the-submitter");

  EXPECT_THAT(Create(&fjord, TinySpec("Rival", 1)), StatusIs(absl::StatusCode::kPermissionDenied));
  v1::GetSubmissionRequest get;
  get.set_name(created->name());
  EXPECT_THAT(fjord.Call(fjord.submission(), &Submissions::GetSubmission, get), IsOk());
  EXPECT_THAT(rival.Call(rival.submission(), &Submissions::GetSubmission, get),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(rival.Call(rival.submission(), &Submissions::ListSubmissions, {})->submissions(),
              IsEmpty());
  EXPECT_THAT(fjord.Call(fjord.submission(), &Submissions::ListSubmissions, {})->submissions(),
              SizeIs(1));
  v1::GetRunRequest run;
  run.set_name(created->runs(0));
  EXPECT_THAT(rival.Call(rival.submission(), &Submissions::GetRun, run),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(rival.Call(rival.submission(), &Submissions::ListRuns, {})->runs(), IsEmpty());
  v1::CancelSubmissionRequest cancel;
  cancel.set_name(created->name());
  EXPECT_THAT(rival.Call(rival.submission(), &Submissions::CancelSubmission, cancel),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(fjord.Call(fjord.admin(), &Admin::ListTokens, {}),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(Watch(&rival, "", 0), IsEmpty());
  const std::vector<v1::Event> events = Watch(&fjord, "", 0);
  EXPECT_THAT(events, SizeIs(1));
  for (const v1::Event& event : events)
    EXPECT_EQ(event.submission(), created->name());
}

TEST_F(ServiceTest, AReviewerReadsEverythingAndChangesNothing) {
  Client reviewer = WithToken("reviewer");
  const auto created = Create(&*root_, TinySpec("Org", 1));
  v1::GetSubmissionRequest get;
  get.set_name(created->name());
  EXPECT_THAT(reviewer.Call(reviewer.submission(), &Submissions::GetSubmission, get), IsOk());
  EXPECT_THAT(Watch(&reviewer, "", 0), Not(IsEmpty()));
  EXPECT_THAT(Create(&reviewer, TinySpec("Org", 1)), StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(ServiceTest, WhoMaySeeAnEntryMaySaySomethingAboutItAfterItsEndToo) {
  Client fjord = WithToken("submitter", "Fjord");
  Client rival = WithToken("submitter", "Rival");
  Client reviewer = WithToken("reviewer");
  const std::string name = Create(&fjord, TinySpec("Fjord", 1))->name();
  v1::CancelSubmissionRequest cancel;
  cancel.set_name(name);
  ASSERT_THAT(fjord.Call(fjord.submission(), &Submissions::CancelSubmission, cancel), IsOk());
  v1::NoteSubmissionRequest note;
  note.set_name(name);
  note.set_text("which switch was it?");
  note.set_request_id("note-1");

  EXPECT_THAT(rival.Call(rival.submission(), &Submissions::NoteSubmission, note),
              StatusIs(absl::StatusCode::kNotFound));
  for (int attempt = 0; attempt < 2; ++attempt)  // told twice, written once
    ASSERT_THAT(reviewer.Call(reviewer.submission(), &Submissions::NoteSubmission, note), IsOk());
  note.set_text("the second");
  const auto answered = fjord.Call(fjord.submission(), &Submissions::NoteSubmission, note);

  ASSERT_THAT(answered, IsOk());
  ASSERT_EQ(answered->notes_size(), 2);
  EXPECT_EQ(answered->notes(0).text(), "which switch was it?");
  EXPECT_EQ(answered->notes(0).organization(), "");
  EXPECT_EQ(answered->notes(1).organization(), "Fjord");
  EXPECT_GT(answered->notes(1).create_time().seconds(), 0);
  EXPECT_EQ(answered->state(), v1::Submission::CANCELLED);
  v1::ExplainSubmissionRequest explain;
  explain.set_name(name);
  const auto why = fjord.Call(fjord.submission(), &Submissions::ExplainSubmission, explain);
  EXPECT_THAT(why->explanation(), HasSubstr("it has ended CANCELLED"));
}

TEST_F(ServiceTest, WithoutIdentityNothingWorksButEnrolment) {
  Client stranger(deployment_.Tls());
  EXPECT_THAT(stranger.Call(stranger.admin(), &Admin::GetServerInfo, {}),
              StatusIs(absl::StatusCode::kUnavailable))
      << "the handshake demands a certificate";
  EXPECT_THAT(deployment_.AsBearer("assay_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
              StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("unknown token")));
  EXPECT_THAT(deployment_.AsBearer(""), StatusIs(absl::StatusCode::kUnauthenticated));
  EXPECT_THAT(deployment_.AsEnrolled("w0", ""), StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(ServiceTest, EveryMethodRefusesUnderItsOwnName) {
  // A reaction that asked for another method's permission would be found here.
  Client reviewer = WithToken("reviewer");
  Client worker(deployment_.Worker("w0"));
  int count = 0;
  for (const google::protobuf::FileDescriptor* file :
       {v1::CreateSubmissionRequest::descriptor()->file(), v1::EnrolRequest::descriptor()->file(),
        v1::Token::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        const std::string method =
            absl::StrCat(file->service(s)->full_name(), "/", file->service(s)->method(m)->name());
        for (auto& [client, role] : {std::pair(&reviewer, auth::Role::kReviewer),
                                     std::pair(&worker, auth::Role::kWorker)}) {
          if (auth::AccessOf(role, method) != auth::Access::kDenied) continue;
          EXPECT_THAT(RawStatus(client, "/" + method),
                      StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(method)));
          ++count;
        }
      }
    }
  }
  EXPECT_GE(count, 35);
}

TEST_F(ServiceTest, AShutdownEndsStreamsAndWaitingCalls) {
  const std::string name = Create(&*root_, TinySpec("Org", 64))->name();
  v1::WatchEventsRequest request;
  request.set_submission(name);
  request.set_follow(true);
  grpc::ClientContext context;
  PrepareCall(root_->endpoint(), absl::Minutes(1), &context);
  const auto reader = root_->submission().WatchEvents(&context, request);
  v1::Event event;
  ASSERT_TRUE(reader->Read(&event));
  FakeWorker worker(deployment_.Worker("w0"), "w0");
  ASSERT_THAT(worker.Synchronize(), IsOk());
  std::thread poll([&] { static_cast<void>(worker.Synchronize()); });

  EXPECT_THAT(deployment_.Terminate(), IsOkAndHolds(0));
  while (reader->Read(&event)) {
  }
  EXPECT_THAT(FromGrpc(reader->Finish()), Not(IsOk()));
  poll.join();
}

TEST_F(ServiceTest, AWorkerSpeaksAsItselfOnly) {
  FakeWorker impostor(deployment_.Worker("w0"), "w1");
  EXPECT_THAT(impostor.Synchronize(),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("w1")));
  Client operator_client = WithToken("operator");
  v1::SynchronizeRequest request;
  request.set_worker("workers/w0");
  EXPECT_THAT(operator_client.Call(operator_client.worker(), &Workers::Synchronize, request),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(ServiceTest, AWorkerWalksASubmissionToAScore) {
  const std::string name = Create(&*root_, TinySpec("Org", 1))->name();
  FakeWorker worker(deployment_.Worker("w0"), "w0");
  for (int i = 0; i < 3; ++i)
    ASSERT_THAT(worker.WalkOneRun(TinyLog()), IsOk());

  const std::vector<v1::Event> events = WatchToTheEnd(&*root_, name);
  // Whether the worker's release comes before or after depends on how fast the last log is judged.
  EXPECT_THAT(events, Contains(Property(&v1::Event::type, "SubmissionClosed")));
  v1::GetSubmissionRequest get;
  get.set_name(name);
  const auto submission = root_->Call(root_->submission(), &Submissions::GetSubmission, get);
  ASSERT_THAT(submission, IsOk());
  EXPECT_EQ(submission->state(), v1::Submission::VALID) << submission->DebugString();
  EXPECT_GT(submission->score_minutes(), 0);
  EXPECT_FALSE(submission->is_mlperf_result());

  v1::GetRunRequest run_request;
  run_request.set_name(submission->runs(0));
  const auto run = root_->Call(root_->submission(), &Submissions::GetRun, run_request);
  ASSERT_THAT(run, IsOk());
  EXPECT_EQ(run->state(), v1::Run::SUCCEEDED);
  EXPECT_TRUE(run->is_converged());
  EXPECT_TRUE(run->is_compliant()) << run->DebugString();
  ASSERT_THAT(run->artifacts(), SizeIs(1));

  const std::string log = absl::StrJoin(TinyLog(), "\n") + "\n";
  EXPECT_EQ(Download(&*root_, run->artifacts(0).sha256()), log);
  EXPECT_THAT(WatchRunLines(&*root_, run->name()), ::testing::ElementsAreArray(TinyLog()));
}

TEST_F(ServiceTest, WhatAWorkerSendsOfAJudgedRunIsKeptApart) {
  const std::string name = Create(&*root_, TinySpec("Org", 1))->runs(0);
  FakeWorker worker(deployment_.Worker("w0"), "w0");
  ASSERT_THAT(worker.WalkOneRun(TinyLog()), IsOk());
  const auto get = [&] {
    v1::GetRunRequest request;
    request.set_name(name);
    return root_->Call(root_->submission(), &Submissions::GetRun, request).value();
  };
  v1::Run judged = get();
  while (judged.state() != v1::Run::SUCCEEDED)
    judged = get();
  v1::RunEvent touch;
  touch.set_kind(v1::RunEvent::FIRST_TOUCH);
  touch.set_seq(std::ssize(TinyLog()) + 1);
  touch.set_wall_us(1);

  EXPECT_THAT(worker.SendEvent(touch), IsOkAndHolds(touch.seq()));
  EXPECT_THAT(worker.Upload("result_1.txt", "forged", Sha256Hex("forged")), IsOk());

  v1::Run after = get();
  ASSERT_THAT(after.late_artifacts(), SizeIs(1));
  EXPECT_EQ(after.late_artifacts(0).sha256(), Sha256Hex("forged"));
  after.clear_late_artifacts();
  after.set_event_count(judged.event_count());
  EXPECT_EQ(after.DebugString(), judged.DebugString());
}

TEST_F(ServiceTest, WhatTheAgentsSawStandsWithTheVerdict) {
  const std::string name = Create(&*root_, TinySpec("Org", 1))->runs(0);
  FakeWorker worker(deployment_.Worker("w0"), "w0");
  ASSERT_THAT(worker.AwaitRun(), IsOk());
  v1::RunEvent event;
  event.set_kind(v1::RunEvent::FINDING);
  event.set_seq(std::ssize(TinyLog()) + 1);
  event.mutable_finding()->set_rule("R-PAU-001");
  event.mutable_finding()->set_severity(v1::Finding::ERROR);
  ASSERT_THAT(worker.SendLines(TinyLog(), 1), IsOk());
  ASSERT_THAT(worker.SendEvent(event), IsOk());
  for (const char* rule : {"R-CLK-002", "R-TIM-005"}) {
    event.set_seq(event.seq() + 1);
    event.mutable_finding()->set_rule(rule);
    ASSERT_THAT(worker.SendEvent(event), IsOk());
  }
  ASSERT_THAT(worker.WalkOneRun(TinyLog()), IsOk());

  v1::GetRunRequest request;
  request.set_name(name);
  v1::Run run;
  while (run.state() != v1::Run::SUCCEEDED)
    run = root_->Call(root_->submission(), &Submissions::GetRun, request).value();
  for (const char* rule : {"R-PAU-001", "R-CLK-002", "R-TIM-005"})
    EXPECT_THAT(run.findings(), Contains(Property(&v1::Finding::rule, rule)));
  EXPECT_TRUE(run.is_compliant()) << "they are evidence, not violations";
}

TEST_F(ServiceTest, AnArtifactWithAnotherDigestIsRefused) {
  Create(&*root_, TinySpec("Org", 1)).value();
  FakeWorker worker(deployment_.Worker("w0"), "w0");
  ASSERT_THAT(worker.AwaitRun(), IsOk());
  EXPECT_THAT(worker.Upload("result_1.txt", "some bytes", Sha256Hex("other bytes")),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(ServiceTest, AGapInTheEventsEndsTheStreamAndNamesWhatIsMissing) {
  Create(&*root_, TinySpec("Org", 1)).value();
  FakeWorker worker(deployment_.Worker("w0"), "w0");
  ASSERT_THAT(worker.AwaitRun(), IsOk());
  EXPECT_THAT(worker.SendLines({"one", "two"}, 1), IsOkAndHolds(2));
  EXPECT_THAT(worker.SendLines({"one", "two", "three"}, 1), IsOkAndHolds(3));
  EXPECT_THAT(worker.SendLines({"five"}, 5), StatusIs(absl::StatusCode::kAborted, HasSubstr("4")));
}

TEST_F(ServiceTest, ARestartKeepsEverything) {
  Create(&*root_, TinySpec("Org", 1), "request-1").value();
  Create(&*root_, TinySpec("Org", 1)).value();
  Client reviewer = WithToken("reviewer");
  const auto before = root_->Call(root_->admin(), &Admin::GetServerInfo, {});
  const std::vector<v1::Event> events = Watch(&*root_, "", 0);

  EXPECT_THAT(deployment_.Terminate(), IsOkAndHolds(0));
  EXPECT_FALSE(FileExists(deployment_.dir().Path("assayd.sock")));
  ASSERT_THAT(deployment_.Start(), IsOk());

  Client again(deployment_.Unix());
  const auto after = again.Call(again.admin(), &Admin::GetServerInfo, {});
  ASSERT_THAT(after, IsOk());
  EXPECT_EQ(after->event_seq(), before->event_seq());
  EXPECT_EQ(after->submission_count(), 2);
  EXPECT_THAT(Watch(&again, "", 0), SizeIs(events.size()));
  EXPECT_EQ(Create(&again, TinySpec("Org", 1), "request-1")->name(), "submissions/e-1");
  EXPECT_EQ(Create(&again, TinySpec("Org", 1))->name(), "submissions/e-3");
  Endpoint kept = reviewer.endpoint();
  kept.target = deployment_.Tls().target;
  Client bearer(kept);
  EXPECT_THAT(bearer.Call(bearer.admin(), &Admin::GetServerInfo, {}), IsOk());
}

TEST_F(ServiceTest, PlansAndExplainsWithoutChangingAnything) {
  const auto before = root_->Call(root_->admin(), &Admin::GetServerInfo, {})->event_seq();
  v1::PlanSubmissionRequest plan;
  *plan.mutable_spec() = TinySpec("Org", 1);
  const auto planned = root_->Call(root_->submission(), &Submissions::PlanSubmission, plan);
  ASSERT_THAT(planned, IsOk());
  EXPECT_EQ(planned->worker_count_matching(), 0);
  EXPECT_FALSE(planned->is_mlperf_result());
  EXPECT_THAT(planned->round_label(), HasSubstr("integration"));
  EXPECT_EQ(root_->Call(root_->admin(), &Admin::GetServerInfo, {})->event_seq(), before);

  v1::ExplainSubmissionRequest explain;
  explain.set_name(Create(&*root_, TinySpec("Org", 1))->name());
  const auto explained = root_->Call(root_->submission(), &Submissions::ExplainSubmission, explain);
  ASSERT_THAT(explained, IsOk());
  EXPECT_THAT(explained->explanation(), Not(IsEmpty()));
}

TEST_F(ServiceTest, HealthAndReflectionAnswer) {
  EXPECT_EQ(RawCall(&*root_, "/grpc.health.v1.Health/Check", ""), std::string("\x08\x01", 2));
  // ServerReflectionRequest{list_services: "*"}
  const std::string services = RawStreamCall(
      &*root_, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "\x3a\x01*");
  EXPECT_THAT(services, HasSubstr("assay.v1.SubmissionService"));
  EXPECT_THAT(services, HasSubstr("assay.v1.EnrolmentService"));
}

TEST_F(ServiceTest, ASecondDaemonOnTheSameDataIsRefused) {
  std::string output;
  EXPECT_THAT(deployment_.RunOnce({"--config", deployment_.dir().Path("assayd.conf")}, &output),
              IsOkAndHolds(Not(0)));
  EXPECT_THAT(output, HasSubstr("data"));
  EXPECT_THAT(root_->Call(root_->admin(), &Admin::GetServerInfo, {}), IsOk());
}

TEST(ConfigTest, TellsAllProblemsAtOnceAndDoesNotServe) {
  Deployment deployment;
  const std::string path = deployment.dir().Path("bad.conf");
  ASSERT_THAT(WriteFileAtomic(path, R"(listen_address: "0.0.0.0:7443"
launcher { kind: "slurm" }
local_users { uid: 1000 role: "king" }
preflight { checks { check: "speed" policy: GATE } checks { check: "memory" } percent_of_median: 101 }
)"),
              IsOk());
  std::string output;
  EXPECT_THAT(deployment.RunOnce({"--config", path, "--check_config"}, &output), IsOkAndHolds(2));
  for (const char* problem : {"data_directory", "plain TCP is not spoken", "slurm", "king",
                              "there is no check \"speed\"; choose among quiet, clock",
                              "memory has no policy", "preflight.percent_of_median: is 101"})
    EXPECT_THAT(output, HasSubstr(problem));

  ASSERT_THAT(WriteFileAtomic(path, "data_directory: \"d\"\nlisten_adress: \"x\"\n"), IsOk());
  EXPECT_THAT(deployment.RunOnce({"--config", path}, &output), IsOkAndHolds(2));
  EXPECT_THAT(output, HasSubstr("bad.conf:2:"));

  ASSERT_THAT(WriteFileAtomic(path, deployment.Config("")), IsOk());
  EXPECT_THAT(deployment.RunOnce({"--config", path, "--check_config"}, &output), IsOkAndHolds(0));
  EXPECT_THAT(deployment.RunOnce({"--version"}, &output), IsOkAndHolds(0));
  EXPECT_THAT(output, HasSubstr("assayd 0."));
}

}  // namespace
}  // namespace assay::testing
