#include "server/api/convert.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/api/convert_worker.h"
#include "server/api/names.h"
#include "tests/support/status_matchers.h"

namespace assay::api {
namespace {

using assay::testing::IsOk;
using assay::testing::IsOkAndHolds;
using assay::testing::StatusIs;
using ::testing::HasSubstr;

// Every field differs from its default, so that one forgotten on the way is seen.
core::SubmissionSpec FullSpec() {
  return {.organization = "Org",
          .system = "Machine",
          .benchmark = "cosmoflow",
          .division = "closed",
          .round = "hpc-3.0.0",
          .dataset = "cosmo32",
          .node_count = 4,
          .ranks_per_node = 2,
          .run_count = 10,
          .hyperparameters = {{"opt_name", "\"sgd\""}, {"epochs", "7"}},
          .workload = core::TrainerWorkload{.backend = "onednn"},
          .epoch_count_max = 99,
          .status = "cloud",
          .worker_labels = {{"rack", "3"}},
          .replacement_count_max = 5,
          .run_timeout_ms = 1'234'567,
          .borrowing = core::Borrowing{core::SubmissionId{7}, core::SubmissionId{12}}};
}

TEST(ConvertTest, ASpecSurvivesTheWayThereAndBack) {
  EXPECT_THAT(FromProto(ToProto(FullSpec())), IsOkAndHolds(FullSpec()));
}

// Of a client from before workloads.
TEST(ConvertTest, ABackendAloneIsThatOfATrainer) {
  v1::SubmissionSpec spec = ToProto(FullSpec());
  spec.clear_workload();
  spec.set_backend("cuda");
  EXPECT_EQ(core::BackendOf(FromProto(spec)->workload), "cuda");
}

// A workload of a newer client would be taken for none, and the trainer would run in its place.
TEST(ConvertTest, WhatASpecHasBeyondThisVersionIsRefused) {
  v1::SubmissionSpec spec = ToProto(FullSpec());
  spec.GetReflection()->MutableUnknownFields(&spec)->AddLengthDelimited(1000, "podman");
  EXPECT_THAT(FromProto(spec),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("coordinator does not know")));
}

TEST(ConvertTest, ParametersOfADatasetAreKeptAsCanonicalText) {
  v1::Dataset dataset;
  dataset.set_name("datasets/cosmo32");
  dataset.set_path("/data");
  (*dataset.mutable_parameters())["extents"] = "[64,  64]";
  EXPECT_EQ(FromProto(dataset)->parameters.at("extents"), "[64, 64]");
  (*dataset.mutable_parameters())["extents"] = "64 x 64";
  EXPECT_THAT(FromProto(dataset),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not JSON")));
}

TEST(ConvertTest, ABorrowingNamesItsEntries) {
  v1::SubmissionSpec spec = ToProto(FullSpec());
  EXPECT_EQ(spec.borrowing().own_entry(), "submissions/e-7");
  spec.mutable_borrowing()->set_lender_entry("e-12");
  EXPECT_THAT(FromProto(spec), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("spec.borrowing.lender_entry")));
}

TEST(ConvertTest, AnEntryTellsWhatItBorrowedAndHowItConverged) {
  core::Submission submission;
  submission.borrowing = core::BorrowingRecord{
      1'000'000, 2'000'000, {{"opt_base_learning_rate", "0.001", "0.002", "borrowed"}}};
  submission.convergence = core::Convergence{.is_passed = true,
                                             .verdict = "Pass",
                                             .message = "RCP found",
                                             .normalization = 1.5,
                                             .mean_epochs = 20,
                                             .normalized_minutes = 15};

  const v1::Submission message = ToProto(submission);

  EXPECT_EQ(message.borrowing().lender_create_time().seconds(), 2);
  ASSERT_EQ(message.borrowing().changes_size(), 1);
  EXPECT_EQ(message.borrowing().changes(0).own_json(), "0.001");
  EXPECT_EQ(message.borrowing().changes(0).json_value(), "0.002");
  EXPECT_EQ(message.reference().verdict(), "Pass");
  EXPECT_EQ(message.reference().normalized_score_minutes(), 15);
  EXPECT_FALSE(message.reference().has_p_value());
}

TEST(ConvertTest, NamesAreReadAsTheyAreWritten) {
  EXPECT_THAT(ParseSubmissionName(NameOf(core::SubmissionId{42})),
              IsOkAndHolds(core::SubmissionId{42}));
  EXPECT_THAT(ParseRunName(NameOf(core::RunId{901})), IsOkAndHolds(core::RunId{901}));
  EXPECT_THAT(ParseTokenName("tokens/t-7"), IsOkAndHolds(core::TokenId{7}));
  EXPECT_THAT(ParseWorkerName("workers/w0.rack-3"), IsOkAndHolds("w0.rack-3"));
  EXPECT_EQ(NameOf(core::RunId{}), "");
}

TEST(ConvertTest, BadNamesAreRefusedWithAnExample) {
  for (const char* name :
       {"", "e-42", "runs/r-1", "submissions/", "submissions/e-0", "submissions/e--1",
        "submissions/e-01", "submissions/e-1/x", "submissions/e-99999999999999999999"}) {
    EXPECT_THAT(ParseSubmissionName(name), StatusIs(absl::StatusCode::kInvalidArgument)) << name;
  }
  EXPECT_THAT(ParseSubmissionName("e-42"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("submissions/e-42")));
  for (const char* name : {"workers/", "workers/../x", "workers/W0", "workers/a b"})
    EXPECT_THAT(ParseWorkerName(name), StatusIs(absl::StatusCode::kInvalidArgument)) << name;
}

// Who knows a seed before the run could choose what fits it.
TEST(ConvertTest, ASeedIsShownOnceItsRunHasStarted) {
  core::Run run = {.id = core::RunId{1}, .seed = 4711};
  for (const core::RunState state : {core::RunState::kQueued, core::RunState::kAssigned}) {
    run.state = state;
    EXPECT_EQ(ToProto(run).seed(), 0);
  }
  for (const core::RunState state :
       {core::RunState::kRunning, core::RunState::kUploading, core::RunState::kSucceeded}) {
    run.state = state;
    EXPECT_EQ(ToProto(run).seed(), 4711);
  }

  const core::EventRow row = {.type = "SubmissionCreated",
                              .body_json = R"({"request_id":"x","seeds":[4711,4712]})"};
  EXPECT_EQ(ToProto(row).body_json(), R"({"request_id":"x"})");
  EXPECT_EQ(ToAuditEntry({.event = row}).body_json(), R"({"request_id":"x"})");
}

TEST(ConvertTest, ADatasetNeedsAnAbsolutePath) {
  v1::Dataset dataset;
  dataset.set_name("datasets/cosmo32");
  dataset.set_path("data/cosmo");
  EXPECT_THAT(FromProto(dataset),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("absolute")));
  dataset.set_path("/data/cosmo");
  EXPECT_THAT(FromProto(dataset), IsOk());
}

v1::EventBatch Batch(std::initializer_list<int64_t> seqs) {
  v1::EventBatch batch;
  batch.set_run("runs/r-1");
  for (const int64_t seq : seqs) {
    batch.add_events()->set_seq(seq);
    batch.mutable_events(batch.events_size() - 1)->set_kind(v1::RunEvent::LOG_LINE);
  }
  return batch;
}

TEST(ConvertTest, ABatchMustBeConsecutive) {
  EXPECT_THAT(FromProto(Batch({5, 6, 7})), IsOk());
  EXPECT_THAT(FromProto(Batch({})), IsOk());
  for (const v1::EventBatch& batch : {Batch({0}), Batch({5, 7}), Batch({5, 5}), Batch({-1, 0})})
    EXPECT_THAT(FromProto(batch), StatusIs(absl::StatusCode::kInvalidArgument));
  v1::EventBatch unknown = Batch({1});
  unknown.mutable_events(0)->set_kind(static_cast<v1::RunEvent::Kind>(99));
  EXPECT_THAT(FromProto(unknown), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ConvertTest, ARunEventKeepsItsBytes) {
  core::RunEvent event = {.seq = 7,
                          .kind = core::RunEventKind::kFinding,
                          .text = std::string("a\0\xff", 3),
                          .wall_us = 11,
                          .mono_ns = 12,
                          .line = 13,
                          .finding = core::Finding{.rule_id = "R-1", .remedy = "do"},
                          .receive_us = 14,
                          .node_rank = 2};
  const v1::RunEvent message = ToProto(event, core::RunId{9});
  EXPECT_EQ(message.text(), event.text);
  EXPECT_EQ(message.run(), "runs/r-9");
  EXPECT_EQ(message.finding().rule(), "R-1");

  v1::EventBatch batch = Batch({});
  *batch.add_events() = message;
  const absl::StatusOr<core::AppendRunEvents> back = FromProto(batch);
  ASSERT_THAT(back, IsOk());
  // These two are the coordinator's to fill in.
  event.receive_us = 0;
  event.node_rank = 0;
  EXPECT_EQ(back->events[0], event);
}

TEST(ConvertTest, APollIsCappedAndAPhaseIsNeeded) {
  v1::SynchronizeRequest request;
  request.set_worker("workers/w0");
  request.set_incarnation("i");
  EXPECT_THAT(FromProto(request), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("phase")));
  request.mutable_status()->set_phase(v1::WorkerStatus::IDLE);
  request.mutable_poll_timeout()->set_seconds(3600);
  EXPECT_EQ(FromProto(request)->poll_timeout_us, 20'000'000);
  request.mutable_poll_timeout()->set_seconds(-5);
  EXPECT_EQ(FromProto(request)->poll_timeout_us, 0);
}

TEST(ConvertTest, ARunSpecTellsTheTrainerEverything) {
  core::RunOrder order = {
      .submission = core::SubmissionId{3},
      .spec = FullSpec(),
      .rules = {.quality_target = 0.124,
                .quality_key = "eval_error",
                .is_staging_timed = true,
                .init_limit_ms = 1000,
                .fixed = {{"kernel_size", "2"}},
                .rule_set_toml = "[round]"},
      .dataset = {.id = "cosmo32",
                  .path = "/data",
                  .digest = "d",
                  .train_sample_count = 5,
                  .eval_sample_count = 6,
                  .compression = "gzip",
                  .parameters = {{"cube_edge", "32"}}},
      .run_number = 4,
      .seed = 17,
      .node_rank = 1,
      .rendezvous_address = "n0:1",
      .rendezvous_token = "t",
      .preflight = core::Preflight{.submission = core::SubmissionId{3},
                                   .state = core::PreflightState::kPassed,
                                   .checks = {{.check = "memory", .value = 12.5, .median = 12.0}}}};
  order.spec.metric = std::string(core::kThroughput);  // so that its start is awaited
  v1::RunSpec spec = ToProto(order, core::RunId{8}, 2);
  // A program has another workload, and is told where its peers are.
  order.spec.workload = core::CommandWorkload{.command = {"train"}, .launcher = "per-rank"};
  order.hosts = {"n0", "n1"};
  order.node_names = {"rack0-n0", "rack0-n1"};
  order.program_port = 12345;
  const v1::RunSpec of_program = ToProto(order, core::RunId{8}, 2);
  EXPECT_EQ(of_program.command().launcher(), "per-rank");
  EXPECT_FALSE(of_program.has_trainer());
  *spec.mutable_hosts() = of_program.hosts();
  *spec.mutable_node_names() = of_program.node_names();
  spec.set_program_port(of_program.program_port());
  EXPECT_EQ(spec.preflight().submission(), spec.submission());
  EXPECT_EQ(spec.preflight().checks(0).median(), 12.0);
  // What is the agent's to fill in stays empty; all else is set.
  const google::protobuf::Descriptor* const type = spec.GetDescriptor();
  std::vector<std::string> unset;
  for (int i = 0; i < type->field_count(); ++i) {
    const google::protobuf::FieldDescriptor* const field = type->field(i);
    const bool is_set = field->is_repeated() ? spec.GetReflection()->FieldSize(spec, field) > 0
                                             : spec.GetReflection()->HasField(spec, field);
    if (!is_set) unset.push_back(field->name());
  }
  EXPECT_THAT(
      unset, ::testing::UnorderedElementsAre(
                 "command", "local_rank", "log_path", "stage_directory", "node_cache",
                 "progress_path", "checkpoint_path", "engine_choices_path", "engine_choices_output",
                 "engine_choices", "rendezvous_listener", "is_rank_network_trusted"));
}

}  // namespace
}  // namespace assay::api
