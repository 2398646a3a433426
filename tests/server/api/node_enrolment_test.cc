#include "server/api/node_enrolment.h"

#include <future>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/sha256.h"
#include "tests/support/status_matchers.h"

namespace assay::api {
namespace {

using assay::testing::IsOk;
using assay::testing::StatusIs;
using ::testing::HasSubstr;

constexpr char kCsr[] = "a certificate request";
constexpr uid_t kService = 990;

// munged of the coordinator's host, and its resolver.
class NodeCredentialTest : public ::testing::Test {
 protected:
  NodeCredentialTest() {
    opened_ = {.payload = NodeClaimText({"a-1", "4711", "n0", Sha256Hex(kCsr)}),
               .uid = kService,
               .address = "10.77.0.10"};
  }
  absl::StatusOr<NodeClaim> Check(const std::string& csr = kCsr) const {
    return CheckCredential(Options(), "MUNGE:sealed:", csr);
  }
  NodeEnrolmentOptions Options() const {
    return {.uid = kService,
            .open = [this](const std::string& credential) -> absl::StatusOr<MungeCredential> {
              EXPECT_EQ(credential, "MUNGE:sealed:");
              if (!refusal_.ok()) return refusal_;
              return opened_;
            },
            .addresses_of =
                [this](const std::string& node) {
                  EXPECT_EQ(node, "n0");
                  return addresses_;
                }};
  }
  static auto Refused(const char* words) {
    return StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(words));
  }

  MungeCredential opened_;
  absl::Status refusal_;
  std::vector<std::string> addresses_ = {"192.168.0.10", "10.77.0.10"};
};

TEST_F(NodeCredentialTest, ThatOfANodeOfTheServicesUserSaysWhichItIs) {
  const absl::StatusOr<NodeClaim> claim = Check();
  ASSERT_THAT(claim, IsOk());
  EXPECT_EQ(*claim, (NodeClaim{"a-1", "4711", "n0", Sha256Hex(kCsr)}));
}

TEST_F(NodeCredentialTest, ThatOfAnotherUserIsRefused) {
  opened_.uid = 1000;
  EXPECT_THAT(Check(), Refused("is of user 1000, and the jobs of this coordinator run as 990"));
}

TEST_F(NodeCredentialTest, ThatForAnotherCertificateRequestIsRefused) {
  EXPECT_THAT(Check("a stranger's request"), Refused("for another certificate request"));
}

TEST_F(NodeCredentialTest, ThatForAnotherPurposeOrVersionIsRefused) {
  for (const char* payload : {"", "assay node enrolment 2\na-1\n4711\nn0\nabc", "somebody's"}) {
    opened_.payload = payload;
    EXPECT_THAT(Check(), Refused("not of the kind \"assay node enrolment 1\"")) << payload;
  }
}

TEST_F(NodeCredentialTest, ThatMadeElsewhereIsRefused) {
  opened_.address = "10.77.0.99";
  EXPECT_THAT(Check(), Refused("made at 10.77.0.99, and node n0 is at 192.168.0.10, 10.77.0.10"));
}

TEST_F(NodeCredentialTest, WhereItWasMadeIsLeftOpenIfNobodyKnows) {
  for (const char* address : {"127.0.1.1", "0.0.0.0", ""}) {
    opened_.address = address;
    EXPECT_THAT(Check(), IsOk()) << "munged does not say: " << address;
  }
  opened_.address = "10.77.0.99";
  for (const std::vector<std::string>& known :
       {std::vector<std::string>{}, std::vector<std::string>{"127.0.0.1"}}) {
    addresses_ = known;
    EXPECT_THAT(Check(), IsOk()) << "the coordinator's host does not know n0";
  }
}

TEST_F(NodeCredentialTest, WhatMungeRefusesIsRefusedInItsWords) {
  for (const char* words : {"Replayed credential", "Expired credential"}) {
    refusal_ = absl::PermissionDeniedError(words);
    EXPECT_THAT(Check(), Refused(words));
  }
  refusal_ = absl::UnavailableError("munged does not answer");
  EXPECT_THAT(Check(), StatusIs(absl::StatusCode::kUnavailable)) << "it may ask again";
}

TEST_F(NodeCredentialTest, MungeIsAskedOnAThreadOfItsOwnUntilTheEnd) {
  NodeEnrolment nodes(Options());
  const auto ask = [&nodes] {
    std::promise<absl::Status> answer;
    nodes.Check("MUNGE:sealed:", kCsr, [&answer](const absl::StatusOr<NodeClaim>& claim) {
      answer.set_value(claim.status());
    });
    return answer.get_future().get();
  };
  EXPECT_THAT(ask(), IsOk());
  nodes.Stop();
  EXPECT_THAT(ask(), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace assay::api
