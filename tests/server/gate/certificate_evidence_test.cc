#include "server/gate/certificate_evidence.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/openssl_ptr.h"
#include "tests/support/status_matchers.h"

namespace assay::gate {
namespace {

using assay::testing::IsOk;
using assay::testing::StatusIs;
using ::testing::HasSubstr;

using CertPtr = std::unique_ptr<X509, OpenSslFree<X509_free>>;

struct Part {
  std::string field;
  std::string value;
};

// With a subject of these parts, and no more.
CertPtr Certificate(const std::vector<Part>& subject) {
  CertPtr certificate(X509_new());
  for (const Part& part : subject)
    EXPECT_EQ(X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()),
                                         part.field.c_str(), MBSTRING_UTF8,
                                         reinterpret_cast<const unsigned char*>(part.value.data()),
                                         static_cast<int>(part.value.size()), -1, 0),
              1);
  return certificate;
}

TEST(CertificateEvidenceTest, TakesTheOnlyCommonName) {
  const CertPtr certificate = Certificate({{"O", "fjord"}, {"CN", "w0.rack-3"}});

  const absl::StatusOr<auth::Evidence> evidence = EvidenceOfCertificate(certificate.get());
  ASSERT_THAT(evidence, IsOk());
  EXPECT_EQ(evidence->certificate_common_name, "w0.rack-3");
}

// Two readers could take different ones for the name.
TEST(CertificateEvidenceTest, RefusesTwoCommonNamesAndNone) {
  const std::vector<std::vector<Part>> subjects = {
      {{"CN", "w0"}, {"CN", "operator"}}, {{"CN", "w0"}, {"CN", "w0"}}, {{"O", "w0"}}, {}};
  for (const std::vector<Part>& subject : subjects)
    EXPECT_THAT(EvidenceOfCertificate(Certificate(subject).get()),
                StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("exactly one common name")))
        << subject.size();
}

}  // namespace
}  // namespace assay::gate
