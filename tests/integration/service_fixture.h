// A real assayd with the dataset of the round "tiny", and verbs of its users.

#ifndef TESTS_INTEGRATION_SERVICE_FIXTURE_H_
#define TESTS_INTEGRATION_SERVICE_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/secret.h"
#include "common/sha256.h"
#include "tests/integration/deployment.h"
#include "tests/integration/fake_worker.h"
#include "tests/support/status_matchers.h"

namespace assay::testing {

using Submissions = v1::SubmissionService::Stub;
using Admin = v1::AdminService::Stub;
using Workers = v1::WorkerService::Stub;
using Enrolment = v1::EnrolmentService::Stub;

class ServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(deployment_.Start(), IsOk());
    root_.emplace(deployment_.Unix());
    AddTinyDataset(&*root_);
  }

  absl::StatusOr<v1::Submission> Create(Client* client, const v1::SubmissionSpec& spec,
                                        const std::string& request_id = MakeUuid()) {
    v1::CreateSubmissionRequest request;
    request.set_request_id(request_id);
    *request.mutable_spec() = spec;
    return client->Call(client->submission(), &Submissions::CreateSubmission, request);
  }

  // An entry of history with one log, in the round "tiny".
  v1::Submission ImportEntry(const v1::SubmissionSpec& spec, const std::string& log,
                             absl::Time published) {
    grpc::ClientContext context;
    PrepareCall(root_->endpoint(), absl::Seconds(60), &context);
    v1::Submission entry;
    const auto writer = root_->submission().ImportSubmission(&context, &entry);
    v1::ImportSubmissionRequest message;
    v1::ImportHeader* const header = message.mutable_header();
    header->set_round("tiny");
    header->set_source_path(spec.organization() + "/results/box/" + Sha256Hex(log));
    header->mutable_publish_time()->set_seconds(absl::ToUnixSeconds(published));
    header->set_system_description_json("{\"submitter\": \"x\"}");
    *header->mutable_spec() = spec;
    writer->Write(message);
    v1::ImportedRun* const run = message.mutable_run();
    run->set_file_name("result_0.txt");
    run->set_sha256(Sha256Hex(log));
    run->set_size_bytes(static_cast<int64_t>(log.size()));
    writer->Write(message);
    message.set_log(log);
    writer->Write(message);
    message.Clear();
    writer->Write(message);
    writer->WritesDone();
    EXPECT_THAT(FromGrpc(writer->Finish()), IsOk());
    return entry;
  }

  // A client with a new token.
  Client WithToken(const std::string& role, const std::string& organization = "") {
    v1::CreateTokenRequest request;
    request.set_request_id(MakeUuid());
    request.mutable_token()->set_kind(v1::Token::ACCESS);
    request.mutable_token()->set_role(role);
    request.mutable_token()->set_principal("the-" + role);
    request.mutable_token()->set_organization(organization);
    const auto created = root_->Call(root_->admin(), &Admin::CreateToken, request);
    EXPECT_THAT(created, IsOk());
    return Client(*deployment_.AsBearer(created->secret()));
  }

  std::string EnrolmentToken(const std::string& worker) {
    v1::CreateTokenRequest request;
    request.mutable_token()->set_kind(v1::Token::ENROL);
    request.mutable_token()->set_principal(worker);
    const auto created = root_->Call(root_->admin(), &Admin::CreateToken, request);
    EXPECT_THAT(created, IsOk());
    return created->secret();
  }

  std::vector<v1::Event> Watch(Client* client, const std::string& submission, int64_t after_seq) {
    v1::WatchEventsRequest request;
    request.set_submission(submission);
    request.set_after_seq(after_seq);
    grpc::ClientContext context;
    PrepareCall(client->endpoint(), absl::Seconds(60), &context);
    const auto reader = client->submission().WatchEvents(&context, request);
    std::vector<v1::Event> events;
    v1::Event event;
    while (reader->Read(&event))
      events.push_back(event);
    EXPECT_THAT(FromGrpc(reader->Finish()), IsOk());
    return events;
  }

  Deployment deployment_;
  std::optional<Client> root_;  // through the Unix socket
};

}  // namespace assay::testing

#endif  // TESTS_INTEGRATION_SERVICE_FIXTURE_H_
