// Sources of programs on their way through a real assayd: who may bring them, and who gets them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/file.h"
#include "common/sha256.h"
#include "tests/integration/service_fixture.h"

namespace assay::testing {
namespace {

using ::testing::HasSubstr;

class SourceTest : public ServiceTest {
 protected:
  v1::CreateSubmissionRequest Request(const std::string& organization, const std::string& source) {
    v1::CreateSubmissionRequest request;
    request.set_request_id(MakeUuid());
    *request.mutable_spec() = TinySpec(organization, 1);
    request.mutable_spec()->set_division("open");
    v1::CommandWorkload* const command = request.mutable_spec()->mutable_command();
    command->add_command("${ASSAY_CODE}/train");
    command->mutable_source()->set_sha256(Sha256Hex(source));
    command->mutable_source()->set_size_bytes(static_cast<int64_t>(source.size()));
    return request;
  }

  // Sends the submission and `pieces`; without an end it stops half-way.
  absl::StatusOr<v1::Submission> Send(Client* client, const v1::CreateSubmissionRequest& request,
                                      const std::vector<std::string>& pieces, bool has_end = true) {
    grpc::ClientContext context;
    PrepareCall(client->endpoint(), absl::Seconds(60), &context);
    v1::Submission made;
    const auto writer = client->submission().CreateSubmissionWithSource(&context, &made);
    v1::CreateSubmissionWithSourceRequest message;
    *message.mutable_create() = request;
    writer->Write(message);
    for (const std::string& piece : pieces) {
      message.set_source(piece);
      writer->Write(message);
    }
    message.Clear();
    if (has_end) writer->Write(message);
    writer->WritesDone();
    const absl::Status status = FromGrpc(writer->Finish());
    if (!status.ok()) return status;
    return made;
  }

  absl::StatusOr<std::string> Fetch(Client* client, const std::string& run, int64_t generation) {
    grpc::ClientContext context;
    PrepareCall(client->endpoint(), absl::Seconds(60), &context);
    v1::DownloadSourceRequest request;
    request.set_run(run);
    request.set_generation(generation);
    const auto reader = client->worker().DownloadSource(&context, request);
    std::string bytes;
    v1::ArtifactChunk chunk;
    while (reader->Read(&chunk))
      bytes += chunk.data();
    const absl::Status status = FromGrpc(reader->Finish());
    if (!status.ok()) return status;
    return bytes;
  }

  const std::string source_ = "a tar file, as far as the coordinator cares";
};

TEST_F(SourceTest, ASourceComesWithItsSubmissionAndStaysWithItsRuns) {
  Client org = WithToken("submitter", "Org");

  const auto made = Send(&org, Request("Org", source_), {source_.substr(0, 5), source_.substr(5)});

  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(made->spec().command().launcher(), "per-rank");
  EXPECT_EQ(Download(&org, Sha256Hex(source_)), source_);
  // From now on it is known to its organisation, and to no other.
  EXPECT_THAT(Create(&org, Request("Org", source_).spec()), IsOk());
  Client rival = WithToken("submitter", "Rival");
  EXPECT_THAT(Create(&rival, Request("Rival", source_).spec()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("CreateSubmissionWithSource")));
}

TEST_F(SourceTest, WhatIsRefusedLeavesNothing) {
  Client org = WithToken("submitter", "Org");
  const v1::CreateSubmissionRequest request = Request("Org", source_);

  EXPECT_THAT(Send(&org, request, {"something else"}), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(Send(&org, request, {source_, "more"}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Send(&org, request, {source_}, /*has_end=*/false),
              StatusIs(absl::StatusCode::kAborted));
  v1::CreateSubmissionRequest bad = request;
  bad.mutable_spec()->mutable_command()->set_launcher("per-core");
  EXPECT_THAT(Send(&org, bad, {source_}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("R-WRK-002")));
  bad = request;
  bad.mutable_spec()->set_organization("Rival");
  EXPECT_THAT(Send(&org, bad, {source_}), StatusIs(absl::StatusCode::kPermissionDenied));

  const std::string name = Sha256Hex(source_);
  EXPECT_FALSE(
      FileExists(deployment_.dir().Path("data/artifacts/" + name.substr(0, 2) + "/" + name)));
}

TEST_F(SourceTest, ARepeatedRequestMakesOneSubmission) {
  Client org = WithToken("submitter", "Org");
  const v1::CreateSubmissionRequest request = Request("Org", source_);

  const auto first = Send(&org, request, {source_});
  const auto second = Send(&org, request, {source_});

  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(first->name(), second->name());
  EXPECT_EQ(Download(&org, Sha256Hex(source_)), source_);
}

// Its submitter may have unpacked it far from the repository that it comes from.
TEST_F(SourceTest, ABorrowingEntryKeepsTheCommitOfItsProgram) {
  Client org = WithToken("submitter", "Org");
  v1::CreateSubmissionRequest request = Request("Org", source_);
  request.mutable_spec()->mutable_command()->mutable_source()->set_git_commit("2c627d4");
  const auto own = Send(&org, request, {source_});
  ASSERT_THAT(own, IsOk());
  v1::SubmissionSpec lent = Request("Rival", source_).spec();
  lent.mutable_command()->clear_source();
  for (v1::Hyperparameter& parameter : *lent.mutable_hyperparameters())
    if (parameter.key() == "opt_base_learning_rate") parameter.set_json_value("0.002");
  const v1::Submission lender = ImportEntry(lent, "a log\n", absl::Now() - absl::Hours(1));
  v1::SubmissionSpec spec = Request("Org", source_).spec();
  *spec.mutable_hyperparameters() = lent.hyperparameters();
  spec.mutable_borrowing()->set_own_entry(own->name());
  spec.mutable_borrowing()->set_lender_entry(lender.name());

  const auto borrowed = Create(&org, spec);

  ASSERT_THAT(borrowed, IsOk());
  EXPECT_EQ(borrowed->spec().command().source().git_commit(), "2c627d4");
  spec.mutable_command()->add_command("--faster");
  EXPECT_THAT(Create(&org, spec),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("R-BOR-002")));
}

TEST_F(SourceTest, OnlyAWorkerThatExecutesTheRunGetsTheSource) {
  Client org = WithToken("submitter", "Org");
  ASSERT_THAT(Send(&org, Request("Org", source_), {source_}), IsOk());
  FakeWorker worker(deployment_.Worker("w0"), "w0");
  Client stranger(deployment_.Worker("w1"));
  ASSERT_THAT(worker.AwaitRun(), IsOk());
  const std::string run = worker.desired().run();
  EXPECT_EQ(worker.desired().spec().command().source().sha256(), Sha256Hex(source_));

  EXPECT_EQ(Fetch(&worker.client(), run, 1).value_or(""), source_);

  EXPECT_THAT(Fetch(&worker.client(), run, 2), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(Fetch(&stranger, run, 1), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(Fetch(&org, run, 1), StatusIs(absl::StatusCode::kPermissionDenied));
}

}  // namespace
}  // namespace assay::testing
