// Jobs of a real Slurm whose agents enrol by munge: without a token, and with no folder that nodes
// share with the coordinator, or with one.

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"

#include "common/file.h"
#include "common/munge/munge.h"
#include "common/munge/node_claim.h"
#include "common/pki.h"
#include "common/rpc/certificate_exchange.h"
#include "common/sha256.h"
#include "tests/e2e/site.h"
#include "tests/e2e/slurm_cluster.h"
#include "tests/support/await.h"
#include "tests/support/status_matchers.h"
#include "tests/support/write_file.h"

namespace assay::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kLauncher[] = R"(launcher {
  kind: "slurm"
  slurm {
    SHARED
    enrolment: MUNGE
    munge_socket: "MUNGE_SOCKET"
    server_address: "127.0.0.1:PORT"
    poll_interval_s: 1
    worker { rendezvous_host: "127.0.0.1" run_user: "root" core_count: 1 data_directory: "SITE/nodes" }
  }
})";

constexpr char kToken[] = "assay_[a-z0-9]{20}";

class MungeEnrolmentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string obstacle = SlurmCluster::Obstacle(); !obstacle.empty()) {
      ASSERT_EQ(std::getenv("CI"), nullptr) << obstacle;
      GTEST_SKIP() << obstacle;
    }
    cluster_ = std::make_unique<SlurmCluster>(&site_);
  }
  void TearDown() override {
    if (!HasFailure()) return;
    std::error_code error;
    for (const char* folder : {"nodes", "shared"})
      for (std::filesystem::recursive_directory_iterator it(site_.Path(folder), error), end;
           !error && it != end; it.increment(error))
        if (it->path().extension() == ".out")
          ADD_FAILURE() << it->path() << ":\n" << ReadFile(it->path()).value_or("");
  }

  // `shared`: a line of the configuration, or none.
  void Begin(const std::string& shared = "") {
    coordinator_ = std::make_unique<Coordinator>(
        &site_, absl::StrReplaceAll(kLauncher, {{"SHARED", shared},
                                                {"MUNGE_SOCKET", cluster_->MungeSocket()},
                                                {"SITE/", site_.Path("")}}));
    ProvideBeacons(site_, "small", 128, 16);
  }
  void Submit(const SubmissionText& text) {
    const Outcome submitted = site_.Assay({"submit", WriteSubmission(site_, "small.toml", text)});
    ASSERT_EQ(submitted.exit_code, 0) << submitted.Text();
  }
  std::string StateOfRun(const std::string& run) const {
    return site_.AssayJson({"run", "show", run}).value("state", "");
  }
  bool IsWithoutJobs() const {
    return cluster_->Run({"squeue", "--noheader", "--format=%A"}).empty();
  }
  // What nobody may find while a job runs: a token, wherever the job left something.
  void ExpectNoToken() const {
    EXPECT_THAT(cluster_->Run({"scontrol", "show", "job", "1"}), Not(ContainsRegex(kToken)));
    EXPECT_THAT(cluster_->Run({"scontrol", "write", "batch_script", "1", "-"}),
                Not(ContainsRegex(kToken)));
    EXPECT_THAT(site_.RunProgram({"/bin/ps", "auxeww"}).out, Not(ContainsRegex(kToken)));
    EXPECT_THAT(site_.RunProgram({"/usr/bin/find", site_.Path(""), "-name", "tokens"}).out,
                IsEmpty());
    EXPECT_THAT(site_.AssayJson({"admin", "token", "list"})["items"], IsEmpty());
  }

  // What a process of root's on `node` is answered that shows `credential`, or one of its own.
  absl::Status Ask(const std::string& worker, const std::string& csr,
                   const std::string& credential) const {
    CertificateExchange exchange = {.path = WorkerCertificatePath(worker), .csr_pem = csr};
    exchange.endpoint = {.target = coordinator_->address(),
                         .ca_pem = ReadFile(site_.Path("etc/ca.crt")).value_or(""),
                         .token = credential};
    return ExchangeForCertificate(exchange).status();
  }
  std::string Credential(const std::string& node, const std::string& csr) const {
    return MungeEncode(cluster_->MungeSocket(), 0,
                       NodeClaimText({"a-1", "1", node, Sha256Hex(csr)}))
        .value_or("munged does not answer");
  }

  Site site_;
  std::unique_ptr<SlurmCluster> cluster_;
  std::unique_ptr<Coordinator> coordinator_;
};

TEST_F(MungeEnrolmentTest, AnEntryRunsWhereNothingIsShared) {
  Begin();
  Submit({});
  ASSERT_TRUE(Await([&] { return StateOfRun("r-1") == "running"; }))
      << site_.Assay({"why", "e-1"}).out;
  ExpectNoToken();
  EXPECT_THAT(*ListDirectory(site_.Path("data/jobs/a1")), ElementsAre("job.sh"));

  const Outcome waited = site_.Assay({"wait", "e-1"});
  EXPECT_EQ(waited.exit_code, 0) << waited.Text();
  EXPECT_EQ(site_.AssayJson({"entry", "show", "e-1"})["state"], "valid");
  EXPECT_THAT(site_.Assay({"admin", "audit"}).out, HasSubstr("NodeEnrolled"));
  EXPECT_EQ(site_.AssayJson({"run", "show", "r-3"})["nodes"], Json({"a1-0", "a1-1"}));
  EXPECT_TRUE(Await([&] { return IsWithoutJobs(); }));
  EXPECT_TRUE(Await([&] { return !FileExists(site_.Path("data/jobs/a1")); }));
  EXPECT_THAT(*ListDirectory(site_.Path("nodes")),
              ElementsAre(ContainsRegex("^a1-[A-Za-z0-9]{6}[.]out$")))
      << "what the job has said stays on its first node";
}

TEST_F(MungeEnrolmentTest, WhoeverIsNotTheNodeIsRefusedAndNoted) {
  Begin();
  Submit({.epochs_max = 2000, .base_learning_rate = "0.000001"});
  ASSERT_TRUE(Await([&] { return StateOfRun("r-1") == "running"; }))
      << site_.Assay({"why", "e-1"}).out;
  const auto is_refused = [](const char* words) {
    return StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(words));
  };
  const std::string csr = MakeKeyAndCsr("a1-0")->csr_pem;
  const std::string credential = Credential("n0", csr);
  EXPECT_THAT(Ask("a1-0", csr, credential), is_refused("n0 has enrolled in job 1 before"));
  EXPECT_THAT(Ask("a1-0", csr, credential), is_refused("Replayed credential"));
  EXPECT_TRUE(
      coordinator_->AwaitLogLine("method=\"/v1/worker-certificate/a1-0\" reason=\"munge: "
                                 "Replayed credential"));
  EXPECT_THAT(Ask("a1-0", csr, Credential("n2", csr)), is_refused("n2 is none of job 1"));
  EXPECT_THAT(Ask("a1-0", csr, Credential("n0", "another")), is_refused("another certificate"));
  EXPECT_EQ(StateOfRun("r-1"), "running");
  EXPECT_EQ(site_.Assay({"cancel", "e-1"}).exit_code, 0);
  EXPECT_TRUE(Await([&] { return IsWithoutJobs(); }));
}

TEST_F(MungeEnrolmentTest, WhatAJobLeavesInASharedFolderIsDelivered) {
  Begin(absl::StrCat("shared_directory: \"", site_.Path("shared"), "\""));
  Submit({});
  ASSERT_TRUE(Await([&] { return StateOfRun("r-1") == "running"; }))
      << site_.Assay({"why", "e-1"}).out;
  ExpectNoToken();
  coordinator_->Kill();
  const auto ended = [&] {
    return site_.RunProgram({"/usr/bin/find", site_.Path("nodes"), "-name", "exit.json"}).out;
  };
  ASSERT_TRUE(Await([&] { return absl::c_count(ended(), '\n') == 2; })) << "on both nodes";
  cluster_->Run({"scancel", "1"});
  ASSERT_TRUE(Await([&] { return IsWithoutJobs(); }));
  EXPECT_THAT(ListDirectory(site_.Path("shared/a1/salvage")), IsOkAndHolds(SizeIs(2))) << ended();
  coordinator_->Start();
  EXPECT_TRUE(Await([&] { return StateOfRun("r-1") == "succeeded"; }));
  EXPECT_EQ(site_.Assay({"cancel", "e-1"}).exit_code, 0);
  EXPECT_TRUE(Await([&] { return IsWithoutJobs(); }));
}

}  // namespace
}  // namespace assay::testing
