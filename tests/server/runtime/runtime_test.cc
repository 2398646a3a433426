#include "server/runtime/runtime.h"

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/rules/registry.h"
#include "common/sha256.h"
#include "tests/server/core/world.h"
#include "tests/support/fake_clock.h"
#include "tests/support/in_time.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::runtime {
namespace {

using ::assay::testing::FakeClock;
using ::assay::testing::IsOk;
using ::assay::testing::IsOkAndHolds;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// The answer of a call that takes a callback.
template <typename T, typename Call>
absl::StatusOr<T> Await(Call call) {
  auto promise = std::make_shared<std::promise<absl::StatusOr<T>>>();
  call([promise](absl::StatusOr<T> result) { promise->set_value(std::move(result)); });
  return assay::testing::InTime(promise->get_future());
}

class RuntimeTest : public ::testing::Test {
 protected:
  void Open() {
    runtime_.reset();
    RuntimeOptions options;
    options.data_directory = dir_.Path("data");
    options.core_thread.is_realtime_wanted = false;
    auto runtime = Runtime::Open(&clock_, std::move(options));
    ASSERT_THAT(runtime, IsOk());
    runtime_ = *std::move(runtime);
  }

  absl::StatusOr<core::Reply> Do(core::CommandBody body, const std::string& principal = "alice") {
    return Await<core::Reply>([&](auto callback) {
      runtime_->core().Post({principal, std::move(body)}, std::move(callback));
    });
  }

  void Sync(core::WorkerReport report = {}) {
    core::Synchronize call{.worker = "w0", .report = std::move(report)};
    call.description.incarnation = "i1";
    ASSERT_THAT(Do(call, "w0"), IsOk());
  }

  // An upload that is filed, and not yet kept or dropped.
  std::pair<Uploads::Ticket, core::ArtifactRef> Upload(const std::string& file_name,
                                                       const std::string& bytes) {
    Uploads& uploads = runtime_->uploads();
    const core::ArtifactRef announced{file_name, Sha256Hex(bytes), std::ssize(bytes)};
    const Uploads::Ticket ticket = *Await<Uploads::Ticket>(
        [&](auto callback) { uploads.Begin(announced, std::move(callback)); });
    std::promise<absl::Status> done;
    uploads.Append(ticket, bytes, [&done](absl::Status status) { done.set_value(status); });
    EXPECT_THAT(assay::testing::InTime(done.get_future()), IsOk());
    return {ticket, *Await<core::ArtifactRef>(
                        [&](auto callback) { uploads.Finish(ticket, std::move(callback)); })};
  }
  // Whether the bytes are on disk, once the uploads have done what they were told.
  bool IsThere(const core::ArtifactRef& artifact) {
    (void)Await<Uploads::Ticket>(
        [&](auto callback) { runtime_->uploads().Begin({}, std::move(callback)); });
    return Await<Queries::ArtifactReading>([&](auto callback) {
             runtime_->queries().OpenArtifact(artifact.sha256, std::move(callback));
           })
        .ok();
  }

  // The state of the submission once it has ended; every commit that concerns it is looked at.
  core::Submission AwaitEnd(core::SubmissionId id) {
    while (true) {
      auto changed = std::make_shared<std::promise<void>>();
      auto is_told = std::make_shared<bool>(false);
      const Watchers::Ticket ticket =
          runtime_->watchers().Subscribe(id, [changed, is_told](int64_t) {
            if (!std::exchange(*is_told, true)) changed->set_value();
          });
      core::Submission submission = *Await<core::Submission>(
          [&](auto callback) { runtime_->queries().GetSubmission(id, std::move(callback)); });
      if (!IsTerminal(submission.state)) assay::testing::InTime(changed->get_future());
      runtime_->watchers().Unsubscribe(ticket);
      if (IsTerminal(submission.state)) return submission;
    }
  }

  TempDir dir_;
  FakeClock clock_;
  std::unique_ptr<Runtime> runtime_;
};

TEST_F(RuntimeTest, JudgesWhatAWorkerDelivers) {
  Open();
  ASSERT_THAT(Do(core::AddDataset{core::testing::SomeDataset()}), IsOk());
  Sync();
  core::CreateSubmission creation = core::testing::Creation(core::testing::SomeSpec(), "a");
  creation.rules.digest = rules::FindRuleSet(creation.spec.round)->digest();
  ASSERT_THAT(Do(creation), IsOk());
  const std::string log = "no MLLOG line at all\n";
  const auto uploaded = Upload("result_1.txt", log);
  const auto& artifact = uploaded.second;
  ASSERT_THAT(Do(core::RecordArtifact{core::RunId{1}, 1, artifact, "w0"}), IsOk());
  runtime_->uploads().Keep(uploaded.first);
  Sync({core::WorkerPhase::kFinished, core::RunId{1}, 1, 0, "", {}});

  const core::Submission ended = AwaitEnd(core::SubmissionId{1});

  EXPECT_EQ(ended.state, core::SubmissionState::kInvalid) << ended.state_reason;
  const core::Run run = *Await<core::Run>(
      [&](auto callback) { runtime_->queries().GetRun(core::RunId{1}, std::move(callback)); });
  EXPECT_EQ(run.state, core::RunState::kSucceeded) << run.state_reason;
  EXPECT_EQ(run.facts.is_compliant, false);
  EXPECT_FALSE(run.facts.findings.empty());
  const auto reading = Await<Queries::ArtifactReading>([&](auto callback) {
    runtime_->queries().OpenArtifact(artifact.sha256, std::move(callback));
  });
  ASSERT_THAT(reading, IsOk());
  for (const std::string& piece : {log, std::string()}) {
    EXPECT_THAT(Await<std::string>([&](auto callback) {
                  runtime_->queries().ReadArtifact(*reading, std::move(callback));
                }),
                IsOkAndHolds(piece));
  }
  // And a verification comes to the same verdict.
  const Verifications::Verification again = runtime_->verifications().Begin("");
  Verifications::Step step;
  while (!step.is_last) {
    step = *Await<Verifications::Step>(
        [&](auto callback) { runtime_->verifications().Next(again, std::move(callback)); });
    EXPECT_THAT(step.faults, SizeIs(0)) << step.faults[0].object << ": " << step.faults[0].problem;
  }
  EXPECT_EQ(step.counts.score_count, 1);
}

TEST_F(RuntimeTest, FailsARunWithoutItsLog) {
  Open();
  ASSERT_THAT(Do(core::AddDataset{core::testing::SomeDataset()}), IsOk());
  Sync();
  ASSERT_THAT(Do(core::testing::Creation(core::testing::SomeSpec(), "a")), IsOk());
  Sync({core::WorkerPhase::kFinished, core::RunId{1}, 1, 0, "", {}});

  EXPECT_THAT(AwaitEnd(core::SubmissionId{1}).state_reason,
              HasSubstr("rank 0 has uploaded no result_1.txt"));
}

TEST_F(RuntimeTest, AnswersQuestions) {
  Open();
  ASSERT_THAT(Do(core::AddDataset{core::testing::SomeDataset()}), IsOk());
  ASSERT_THAT(Do(core::testing::Creation(core::testing::SomeSpec(), "a")), IsOk());
  Queries& queries = runtime_->queries();

  const auto events = Await<Queries::EventsAnswer>([&](auto callback) {
    queries.EventsAfter({.sees_all = true}, {}, 0, 100, std::move(callback));
  });
  EXPECT_THAT(events->events, SizeIs(2));
  EXPECT_EQ(events->last_seq, 2);
  EXPECT_EQ(runtime_->watchers().committed_seq(), 2);
  EXPECT_THAT(Await<std::vector<core::AuditRow>>(
                  [&](auto callback) { queries.Audit({}, std::move(callback)); }),
              IsOkAndHolds(SizeIs(2)));
  EXPECT_THAT(Await<std::vector<core::Dataset>>(
                  [&](auto callback) { queries.ListDatasets(std::move(callback)); }),
              IsOkAndHolds(SizeIs(1)));
  EXPECT_THAT(Await<core::Dataset>(
                  [&](auto callback) { queries.GetDataset("cosmo32", std::move(callback)); }),
              IsOk());
  EXPECT_THAT(Await<std::vector<core::Token>>(
                  [&](auto callback) { queries.ListTokens(std::move(callback)); }),
              IsOkAndHolds(SizeIs(0)));
  EXPECT_EQ(Await<core::Page<core::Submission>>([&](auto callback) {
              queries.ListSubmissions({.viewer = {.sees_all = true}}, {}, std::move(callback));
            })->items.size(),
            1u);
  EXPECT_EQ(Await<core::Page<core::SeenRun>>([&](auto callback) {
              queries.ListRuns({.viewer = {.sees_all = true}}, {}, std::move(callback));
            })->items.size(),
            1u);
  EXPECT_THAT(Await<std::vector<core::RunEvent>>([&](auto callback) {
                queries.RunEventsAfter(core::RunId{1}, -1, 0, 10, std::move(callback));
              }),
              IsOkAndHolds(SizeIs(0)));
  EXPECT_THAT(Await<core::ArtifactInfo>([&](auto callback) {
                queries.GetArtifact({.sees_all = true}, "x", std::move(callback));
              }),
              StatusIs(absl::StatusCode::kNotFound));
  queries.Stop();
  EXPECT_THAT(Await<core::Dataset>(
                  [&](auto callback) { queries.GetDataset("cosmo32", std::move(callback)); }),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(RuntimeTest, TakesArtifactsInPieces) {
  Open();
  Uploads& uploads = runtime_->uploads();
  const std::string bytes = "hello world";
  const auto ticket = Await<Uploads::Ticket>([&](auto callback) {
    uploads.Begin({"a.txt", Sha256Hex(bytes), 11}, std::move(callback));
  });
  ASSERT_THAT(ticket, IsOk());
  const auto append = [&](Uploads::Ticket to, const std::string& piece) {
    std::promise<absl::Status> done;
    uploads.Append(to, piece, [&done](absl::Status status) { done.set_value(status); });
    return assay::testing::InTime(done.get_future());
  };
  EXPECT_THAT(append(*ticket, "hello "), IsOk());
  EXPECT_THAT(append(*ticket, "world"), IsOk());
  EXPECT_THAT(Await<core::ArtifactRef>(
                  [&](auto callback) { uploads.Finish(*ticket, std::move(callback)); }),
              IsOk());
  EXPECT_THAT(append(*ticket, "more"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Await<core::ArtifactRef>(
                  [&](auto callback) { uploads.Finish(*ticket, std::move(callback)); }),
              StatusIs(absl::StatusCode::kNotFound));
  uploads.Drop(*ticket, [] {});
}

TEST_F(RuntimeTest, KeepsNoBytesThatNoRunHolds) {
  Open();
  Uploads& uploads = runtime_->uploads();

  const auto [first, artifact] = Upload("a.txt", "hello");
  const auto second = Upload("b.txt", "hello").first;
  uploads.Drop(first, [] {});
  EXPECT_TRUE(IsThere(artifact)) << "the other upload brings them too";
  uploads.Drop(second, [] {});
  EXPECT_FALSE(IsThere(artifact));

  const auto third = Upload("a.txt", "hello").first;
  const auto fourth = Upload("b.txt", "hello").first;
  uploads.Keep(third);
  uploads.Drop(fourth, [] {});
  EXPECT_TRUE(IsThere(artifact)) << "a run holds them";
  uploads.Drop(Upload("c.txt", "hello").first, [] {});
  EXPECT_TRUE(IsThere(artifact)) << "they were there before";
}

TEST_F(RuntimeTest, KeepsASecondDaemonOut) {
  Open();
  RuntimeOptions options;
  options.data_directory = dir_.Path("data");

  EXPECT_THAT(Runtime::Open(&clock_, std::move(options)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("in use")));
}

// ------------------------------------------------------------------------------------------ rules

TEST(RuleBookTest, FillsInWhatTheRoundSays) {
  const auto book = *LoadRuleBook({"deploy/rounds/cosmoflow-mini.toml"});
  core::SubmissionSpec spec = core::testing::SomeSpec();
  spec.ranks_per_node = spec.run_count = spec.epoch_count_max = 0;
  spec.run_timeout_ms = 0;
  spec.workload = core::TrainerWorkload{};

  const auto plan = book->PlanSubmission(spec);

  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->spec.run_count, 10);
  EXPECT_EQ(plan->spec.ranks_per_node, 1);
  EXPECT_EQ(core::BackendOf(plan->spec.workload), "onednn");
  EXPECT_EQ(plan->rules.quality_target, 0.124);
  EXPECT_EQ(plan->rules.quality_key, "eval_error");
  EXPECT_EQ(plan->rules.init_limit_ms, 30 * 60 * 1000);
  EXPECT_TRUE(plan->rules.is_mlperf_result);
  EXPECT_EQ(plan->rules.rule_set_toml, "");
  spec.round = "cosmoflow-mini";
  const auto facility = book->PlanSubmission(spec);
  ASSERT_THAT(facility, IsOk());
  EXPECT_FALSE(facility->rules.is_mlperf_result);
  EXPECT_NE(facility->rules.rule_set_toml, "");
}

TEST(RuleBookTest, SaysWhatItDoesNotKnow) {
  const auto book = *LoadRuleBook({});
  core::SubmissionSpec spec = core::testing::SomeSpec();
  spec.round = "hpc-9";
  EXPECT_THAT(book->PlanSubmission(spec),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("hpc-3.0.0")));
  spec = core::testing::SomeSpec();
  spec.benchmark = "chess";
  EXPECT_THAT(book->PlanSubmission(spec),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cosmoflow")));
  spec = core::testing::SomeSpec();
  spec.hyperparameters = {{"opt_name", "sgd"}};
  EXPECT_THAT(book->PlanSubmission(spec),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not JSON")));
  spec.hyperparameters = {{"a", "1"}, {"a", "1"}};
  EXPECT_THAT(book->PlanSubmission(spec),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("twice")));
  EXPECT_THAT(LoadRuleBook({"absent.toml"}), StatusIs(absl::StatusCode::kInvalidArgument));
  const std::string mini = "deploy/rounds/cosmoflow-mini.toml";
  EXPECT_THAT(LoadRuleBook({mini, mini}), StatusIs(absl::StatusCode::kAlreadyExists));
}

}  // namespace
}  // namespace assay::runtime
