#include "server/auth/certificate_generation.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"

namespace assay::auth {
namespace {

using assay::testing::IsOkAndHolds;
using assay::testing::StatusIs;

TEST(CertificateGenerationTest, IsReadBackFromItsUri) {
  EXPECT_EQ(GenerationUri(3), "urn:assay:certificate-generation:3") << "for those who sign by hand";
  EXPECT_THAT(GenerationOf({GenerationUri(3)}), IsOkAndHolds(3));
  EXPECT_THAT(GenerationOf({"spiffe://fjord/w0", GenerationUri(12)}), IsOkAndHolds(12));
}

TEST(CertificateGenerationTest, IsZeroWhereNothingIsSaid) {
  EXPECT_THAT(GenerationOf({}), IsOkAndHolds(0));
  EXPECT_THAT(GenerationOf({"spiffe://fjord/w0"}), IsOkAndHolds(0));
}

TEST(CertificateGenerationTest, IsNotGuessed) {
  const std::string prefix = "urn:assay:certificate-generation:";
  for (const char* text : {"", "x", "-1", "+1", " 1", "1x", "99999999999999999999"}) {
    EXPECT_THAT(GenerationOf({prefix + text}), StatusIs(absl::StatusCode::kUnauthenticated))
        << text;
  }
  EXPECT_THAT(GenerationOf({GenerationUri(1), GenerationUri(2)}),
              StatusIs(absl::StatusCode::kUnauthenticated));
}

}  // namespace
}  // namespace assay::auth
