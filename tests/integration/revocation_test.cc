// A worker's key has leaked: what its holders can do before and after the revocation, with real
// certificates over TLS.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/pki.h"
#include "tests/integration/deployment.h"
#include "tests/integration/fake_worker.h"
#include "tests/integration/service_fixture.h"
#include "tests/support/status_matchers.h"

namespace assay::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Property;

constexpr auto kUnauthenticated = absl::StatusCode::kUnauthenticated;

class RevocationServiceTest : public ServiceTest {
 protected:
  absl::Status Revoke(const std::string& worker) {
    v1::RevokeWorkerRequest request;
    request.set_name("workers/" + worker);
    request.set_reason("stolen");
    return root_->Call(root_->admin(), &Admin::RevokeWorker, request).status();
  }

  // A certificate of w7 for a new key, on the strength of what `caller` shows.
  absl::StatusOr<Endpoint> Renew(const Endpoint& caller) {
    const KeyAndCsr key = *MakeKeyAndCsr("w7");
    v1::EnrolRequest request;
    request.set_worker("w7");
    request.set_csr_pem(key.csr_pem);
    Client client(caller);
    const auto enrolled = client.Call(client.enrolment(), &Enrolment::Enrol, request);
    if (!enrolled.ok()) return enrolled.status();
    Endpoint endpoint = deployment_.Tls();
    endpoint.certificate_pem = enrolled->certificate_pem();
    endpoint.key_pem = key.key_pem;
    return endpoint;
  }

  absl::Status Call(const Endpoint& endpoint) {
    return FakeWorker(endpoint, "w7").Synchronize().status();
  }

  // The same certificate at the address of the daemon as it runs now.
  Endpoint Again(const Endpoint& old) {
    Endpoint endpoint = deployment_.Tls();
    endpoint.certificate_pem = old.certificate_pem;
    endpoint.key_pem = old.key_pem;
    return endpoint;
  }
};

TEST_F(RevocationServiceTest, RevokedCertificatesAreRefusedUntilTheWorkerEnrolsAgain) {
  const Endpoint stolen = *deployment_.AsEnrolled("w7", EnrolmentToken("w7"));
  const Endpoint renewed = *Renew(stolen);
  const Endpoint by_hand = deployment_.Worker("w7");  // signed with the CA's key elsewhere
  for (const Endpoint& endpoint : {stolen, renewed, by_hand})
    ASSERT_THAT(Call(endpoint), IsOk());
  const std::string unused = EnrolmentToken("w7");

  ASSERT_THAT(Revoke("w7"), IsOk());

  for (const Endpoint& endpoint : {stolen, renewed, by_hand}) {
    EXPECT_THAT(Call(endpoint), StatusIs(kUnauthenticated, HasSubstr("assay admin enrol w7")));
    EXPECT_THAT(Renew(endpoint), StatusIs(kUnauthenticated));
    Client thief(endpoint);
    EXPECT_THAT(thief.Call(thief.admin(), &Admin::ListWorkers, {}), StatusIs(kUnauthenticated));
  }
  EXPECT_THAT(deployment_.AsEnrolled("w7", unused), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(Call(deployment_.Worker("w8")), StatusIs(absl::StatusCode::kPermissionDenied))
      << "another worker is let in, and told that it is not w7";

  deployment_.Kill();
  ASSERT_THAT(deployment_.Start(), IsOk());
  root_.emplace(deployment_.Unix());
  EXPECT_THAT(Call(Again(stolen)), StatusIs(kUnauthenticated)) << "a new start remembers";

  const absl::StatusOr<Endpoint> fresh = deployment_.AsEnrolled("w7", EnrolmentToken("w7"));
  ASSERT_THAT(fresh, IsOk());
  EXPECT_THAT(Call(*fresh), IsOk());
  const absl::StatusOr<Endpoint> later = Renew(*fresh);
  ASSERT_THAT(later, IsOk());
  EXPECT_THAT(Call(*later), IsOk()) << "renewed without a token, as any";
  EXPECT_THAT(Call(Again(stolen)), StatusIs(kUnauthenticated)) << "for ever";

  v1::ListAuditRequest of_worker;
  of_worker.set_object("workers/w7");
  of_worker.set_with_bodies(true);
  const auto audit = root_->Call(root_->admin(), &Admin::ListAudit, of_worker);
  ASSERT_THAT(audit, IsOk());
  EXPECT_THAT(audit->entries(),
              Contains(AllOf(Property(&v1::AuditEntry::type, "WorkerRevoked"),
                             Property(&v1::AuditEntry::principal, "root"),
                             Property(&v1::AuditEntry::body_json, HasSubstr("stolen")))));
}

TEST_F(RevocationServiceTest, WhatIsUnderWayEndsAndTheRunFails) {
  const std::string name = Create(&*root_, TinySpec("Org", 1))->name();
  const Endpoint endpoint = *deployment_.AsEnrolled("w7", EnrolmentToken("w7"));
  FakeWorker worker(endpoint, "w7");
  ASSERT_THAT(worker.AwaitRun(), IsOk());
  grpc::ClientContext context;
  PrepareCall(endpoint, absl::Seconds(60), &context);
  const auto stream = worker.client().worker().StreamEvents(&context);
  v1::EventBatch batch;
  batch.set_run(worker.desired().run());
  batch.set_generation(worker.desired().generation());
  v1::RunEvent* const line = batch.add_events();
  line->set_seq(1);
  line->set_kind(v1::RunEvent::LOG_LINE);
  line->set_text("before");
  v1::EventAck ack;
  ASSERT_TRUE(stream->Write(batch));
  ASSERT_TRUE(stream->Read(&ack));

  ASSERT_THAT(Revoke("w7"), IsOk());
  line->set_seq(2);
  line->set_text("after");
  stream->Write(batch);

  EXPECT_FALSE(stream->Read(&ack));
  EXPECT_THAT(FromGrpc(stream->Finish()), StatusIs(kUnauthenticated));
  v1::GetRunRequest get;
  get.set_name(worker.desired().run());
  const auto run = root_->Call(root_->submission(), &Submissions::GetRun, get);
  ASSERT_THAT(run, IsOk());
  EXPECT_EQ(run->state(), v1::Run::FAILED);
  EXPECT_EQ(run->state_reason(), "the certificate of worker w7 was revoked");
  EXPECT_THAT(worker.Upload("result_1.txt", "x", std::string(64, 'a')).status(),
              StatusIs(kUnauthenticated));
}

TEST_F(RevocationServiceTest, OnlyOperatorsRevoke) {
  v1::RevokeWorkerRequest request;
  request.set_name("workers/w7");
  for (const char* role : {"submitter", "reviewer"}) {
    Client client = WithToken(role, role == std::string("submitter") ? "Org" : "");
    EXPECT_THAT(client.Call(client.admin(), &Admin::RevokeWorker, request),
                StatusIs(absl::StatusCode::kPermissionDenied));
  }
  Client self(deployment_.Worker("w7"));
  EXPECT_THAT(self.Call(self.admin(), &Admin::RevokeWorker, request),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(Revoke("w7"), StatusIs(absl::StatusCode::kNotFound)) << "it never had a certificate";
}

}  // namespace
}  // namespace assay::testing
