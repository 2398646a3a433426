// What damage of its data comes to: named by `assay admin verify` while the daemon runs, by
// `assayd --verify` while it does not, and the daemon does not start over a loss.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/log.h"
#include "tests/integration/deployment.h"
#include "tests/integration/fake_worker.h"
#include "tests/support/status_matchers.h"

namespace assay::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class VerifyStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(deployment_.Start(), IsOk());
    Client root(deployment_.Unix());
    AddTinyDataset(&root);
    for (int i = 0; i < 20; ++i) {
      v1::CreateSubmissionRequest request;
      request.set_request_id(absl::StrCat("r", i));
      *request.mutable_spec() = TinySpec("Org", 64);
      ASSERT_THAT(
          root.Call(root.submission(), &v1::SubmissionService::Stub::CreateSubmission, request),
          IsOk());
    }
  }

  std::string Path(const std::string& name) const { return deployment_.dir().Path("data/" + name); }

  // The faults that a running daemon tells; fails unless a summary with their number follows.
  std::vector<std::string> FaultsOnline() {
    Client root(deployment_.Unix());
    grpc::ClientContext context;
    PrepareCall(root.endpoint(), absl::Minutes(2), &context);
    const auto reader = root.admin().VerifyStore(&context, v1::VerifyStoreRequest());
    std::vector<std::string> faults;
    v1::VerifyStoreResponse response;
    while (reader->Read(&response)) {
      if (response.has_fault())
        faults.push_back(absl::StrCat(response.fault().file(), ": ", response.fault().object()));
    }
    EXPECT_THAT(FromGrpc(reader->Finish()), IsOk());
    EXPECT_TRUE(response.has_summary());
    EXPECT_EQ(response.summary().fault_count(), std::ssize(faults));
    EXPECT_GE(response.summary().event_count(), 21);
    return faults;
  }

  int VerifyOffline(std::string* output) {
    const auto code = deployment_.RunOnce(
        {"--config", deployment_.dir().Path("assayd.conf"), "--verify", "--json"}, output);
    CHECK_OK(code.status());
    return *code;
  }

  static void Flip(const std::string& path, int64_t offset) {
    const UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
    unsigned char byte = 0;
    CHECK(pread(fd.get(), &byte, 1, offset) == 1);
    byte ^= 0x20;
    CHECK(pwrite(fd.get(), &byte, 1, offset) == 1);
  }

  Deployment deployment_;
};

TEST_F(VerifyStoreTest, TellsFaultsWhileItServes) {
  EXPECT_THAT(FaultsOnline(), IsEmpty());

  Flip(Path("assay.db"), 3 * 4096 + 100);

  EXPECT_THAT(FaultsOnline(), Contains(HasSubstr("assay.db: page 4 (")));
}

TEST_F(VerifyStoreTest, ADamagedLogIsNamedAndTheStartRefused) {
  std::string output;
  EXPECT_EQ(VerifyOffline(&output), 2) << "a daemon runs";
  EXPECT_THAT(output, HasSubstr("assay admin verify"));
  deployment_.Kill();
  EXPECT_EQ(VerifyOffline(&output), 0) << output;
  EXPECT_THAT(output, HasSubstr("\"summary\""));

  Flip(Path("assay.db-wal"), 32 + 4120 + 99);

  EXPECT_EQ(VerifyOffline(&output), 1);
  EXPECT_THAT(output, AllOf(HasSubstr("assay.db-wal"), HasSubstr("frame 2")));
  const std::string config = deployment_.dir().Path("assayd.conf");
  EXPECT_THAT(deployment_.RunOnce({"--config", config}, &output), IsOkAndHolds(1));
  EXPECT_THAT(output, AllOf(HasSubstr("frame 2 of assay.db-wal"), HasSubstr("--accept_data_loss")));
}

}  // namespace
}  // namespace assay::testing
