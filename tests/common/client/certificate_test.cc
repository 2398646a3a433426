// What is decided before anybody is asked; the exchange itself is tested with a coordinator
// (tests/integration).

#include "common/client/certificate.h"

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::client {
namespace {

using ::testing::HasSubstr;

constexpr char kNoCache[] = "";

TEST(WithCertificateTest, AUnixSocketNeedsNone) {
  const auto endpoint =
      WithCertificate(kNoCache, absl::UnixEpoch(), {.target = "unix:/run/a.sock", .token = "t"});

  ASSERT_TRUE(endpoint.ok());
  EXPECT_EQ(endpoint->token, "t");
  EXPECT_EQ(endpoint->certificate_pem, "");
}

TEST(WithCertificateTest, WithoutTokenOrCaItSaysWhatIsMissing) {
  const auto no_token = WithCertificate(kNoCache, absl::UnixEpoch(), {.target = "host:1"});
  EXPECT_TRUE(absl::IsUnauthenticated(no_token.status()));
  EXPECT_THAT(no_token.status().message(), HasSubstr("token_file"));

  const auto no_ca =
      WithCertificate(kNoCache, absl::UnixEpoch(), {.target = "host:1", .token = "t"});
  EXPECT_TRUE(absl::IsInvalidArgument(no_ca.status()));
  EXPECT_THAT(no_ca.status().message(), HasSubstr("ca.crt"));
}

}  // namespace
}  // namespace assay::client
