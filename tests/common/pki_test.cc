// The oracle is the openssl command line: it must verify what we sign and read what we write.

#include "common/pki.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/process.h"
#include "tests/support/certificate_subject.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay {
namespace {

using assay::testing::IsOk;
using assay::testing::StatusIs;
using assay::testing::SubjectOf;
using assay::testing::TempDir;
using ::testing::HasSubstr;
using ::testing::Not;

const absl::Time kNow = absl::Now();

class PkiTest : public ::testing::Test {
 protected:
  PkiTest() : ca_(*MakeCa("assay CA of fjord", {kNow, absl::Hours(24)})) {
    Write("ca.crt", ca_.certificate_pem);
  }

  void Write(const std::string& name, const std::string& text) {
    EXPECT_THAT(WriteFileAtomic(dir_.Path(name), text), IsOk());
  }

  // Signs `name` as `kind`, writes it to leaf.crt and leaf.key and returns the certificate.
  std::string Leaf(const std::string& name, CertificateKind kind,
                   std::vector<std::string> subject_names = {}) {
    const KeyAndCsr request = *MakeKeyAndCsr(name);
    const auto cert = SignCsr(ca_, request.csr_pem,
                              {.common_name = name,
                               .subject_names = std::move(subject_names),
                               .kind = kind,
                               .validity = {kNow, absl::Hours(1)}});
    EXPECT_THAT(cert, IsOk());
    Write("leaf.crt", *cert);
    Write("leaf.key", request.key_pem);
    Write("leaf.csr", request.csr_pem);
    return *cert;
  }

  // Output of `openssl <arguments>` run in the directory, with its exit code as the last line.
  std::string OpenSsl(const std::string& arguments) {
    const std::string out = dir_.Path("out");
    EXPECT_THAT(RemoveTree(out), IsOk());
    const auto child = Spawn({.argv = {"/bin/sh", "-c", absl::StrCat("openssl ", arguments)},
                              .working_directory = dir_.path(),
                              .output_path = out});
    EXPECT_THAT(child, IsOk());
    const auto code = WaitForExit(*child, absl::Seconds(30));
    EXPECT_THAT(code, IsOk());
    return absl::StrCat(*ReadFile(out), "\nexit=", *code);
  }

  TempDir dir_;
  CertificateAndKey ca_;
};

TEST_F(PkiTest, OpenSslVerifiesAServerCertificateForItsNamesOnly) {
  Leaf("coordinator", CertificateKind::kServer, {"node1.example", "10.1.2.3", "::1"});

  const std::string verify = "verify -x509_strict -CAfile ca.crt -purpose sslserver ";
  EXPECT_THAT(OpenSsl(verify + "-verify_hostname node1.example leaf.crt"), HasSubstr("exit=0"));
  EXPECT_THAT(OpenSsl(verify + "-verify_ip 10.1.2.3 leaf.crt"), HasSubstr("exit=0"));
  EXPECT_THAT(OpenSsl(verify + "-verify_ip ::1 leaf.crt"), HasSubstr("exit=0"));
  EXPECT_THAT(OpenSsl(verify + "-verify_hostname node2.example leaf.crt"),
              Not(HasSubstr("exit=0")));
}

TEST_F(PkiTest, AClientCertificateIsNoServerCertificateAndViceVersa) {
  Leaf("w0", CertificateKind::kClient);
  EXPECT_THAT(OpenSsl("verify -x509_strict -CAfile ca.crt -purpose sslclient leaf.crt"),
              HasSubstr("exit=0"));
  EXPECT_THAT(OpenSsl("verify -CAfile ca.crt -purpose sslserver leaf.crt"),
              Not(HasSubstr("exit=0")));

  Leaf("coordinator", CertificateKind::kServer, {"localhost"});
  EXPECT_THAT(OpenSsl("verify -CAfile ca.crt -purpose sslclient leaf.crt"),
              Not(HasSubstr("exit=0")));
}

TEST_F(PkiTest, ALeafCannotSignAnother) {
  const std::string leaf = Leaf("w0", CertificateKind::kClient);
  const CertificateAndKey rogue = {leaf, *ReadFile(dir_.Path("leaf.key"))};
  const KeyAndCsr request = *MakeKeyAndCsr("w1");
  const auto forged =
      SignCsr(rogue, request.csr_pem, {.common_name = "w1", .validity = {kNow, absl::Hours(1)}});
  ASSERT_THAT(forged, IsOk());
  Write("forged.crt", *forged);

  EXPECT_THAT(OpenSsl("verify -CAfile ca.crt -untrusted leaf.crt forged.crt"),
              Not(HasSubstr("exit=0")));
  EXPECT_THAT(CheckSignedBy(*forged, ca_.certificate_pem),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(PkiTest, OpenSslReadsNameAndEndAsWeWroteThem) {
  const std::string cert = Leaf("w0.rack-3", CertificateKind::kClient);

  EXPECT_EQ(absl::ToUnixSeconds(*NotAfter(cert)), absl::ToUnixSeconds(kNow + absl::Hours(1)));
  EXPECT_THAT(OpenSsl("x509 -in leaf.crt -noout -subject"), HasSubstr("CN = w0.rack-3"));
  EXPECT_THAT(OpenSsl("req -in leaf.csr -noout -verify"), HasSubstr("exit=0"));
  EXPECT_THAT(OpenSsl("x509 -in ca.crt -noout -text"), HasSubstr("CA:TRUE, pathlen:0"));
}

TEST_F(PkiTest, TheSubjectComesFromTheRequestNotFromTheCsr) {
  const KeyAndCsr wants_to_be_root = *MakeKeyAndCsr("coordinator");
  const auto cert = SignCsr(ca_, wants_to_be_root.csr_pem,
                            {.common_name = "w7", .validity = {kNow, absl::Hours(1)}});
  ASSERT_THAT(cert, IsOk());
  EXPECT_EQ(SubjectOf(*cert), "CN = w7");
}

TEST_F(PkiTest, RefusesACsrThatItsKeyDidNotSign) {
  const KeyAndCsr request = *MakeKeyAndCsr("w0");
  // The last bytes of the DER are the signature.
  std::string damaged = request.csr_pem;
  const size_t end = damaged.find("\n-----END");
  damaged[end - 6] = damaged[end - 6] == 'A' ? 'B' : 'A';
  EXPECT_THAT(SignCsr(ca_, damaged, {.common_name = "w0", .validity = {kNow, absl::Hours(1)}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(PkiTest, RefusesAWeakKey) {
  const std::string made =
      OpenSsl("req -new -newkey rsa:1024 -nodes -subj /CN=w0 -keyout weak.key -out weak.csr");
  ASSERT_THAT(made, HasSubstr("exit=0"));
  EXPECT_THAT(SignCsr(ca_, *ReadFile(dir_.Path("weak.csr")),
                      {.common_name = "w0", .validity = {kNow, absl::Hours(1)}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("weak")));
}

TEST_F(PkiTest, BadTextIsInvalidArgumentNotACrash) {
  const CertificateRequest request = {.common_name = "w0", .validity = {kNow, absl::Hours(1)}};
  for (const std::string& text :
       {std::string(), std::string("hello"), ca_.key_pem, std::string(1 << 20, 'x'),
        std::string("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")}) {
    EXPECT_THAT(NotAfter(text), StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(SignCsr(ca_, text, request), StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_THAT(MakeCa("", {kNow, absl::Hours(1)}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(MakeKeyAndCsr(std::string(65, 'a')), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(MakeKeyAndCsr("a\nb"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(MakeCa("x", {kNow, absl::ZeroDuration()}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(PkiTest, SubjectNamesCannotSmuggleExtensions) {
  const KeyAndCsr request = *MakeKeyAndCsr("x");
  for (const char* name : {"a,DNS:b", "", "host name", "email:root@x"}) {
    EXPECT_THAT(SignCsr(ca_, request.csr_pem,
                        {.common_name = "x",
                         .subject_names = {name},
                         .kind = CertificateKind::kServer,
                         .validity = {kNow, absl::Hours(1)}}),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << name;
  }
}

TEST_F(PkiTest, OpenSslReadsTheUrisAndVerifiesTheRest) {
  const KeyAndCsr request = *MakeKeyAndCsr("w0");
  CertificateRequest wanted = {.common_name = "w0",
                               .uris = {"urn:assay:certificate-generation:7"},
                               .validity = {kNow, absl::Hours(1)}};
  const auto cert = SignCsr(ca_, request.csr_pem, wanted);
  ASSERT_THAT(cert, IsOk());
  Write("leaf.crt", *cert);

  EXPECT_THAT(OpenSsl("x509 -in leaf.crt -noout -ext subjectAltName"),
              HasSubstr("URI:urn:assay:certificate-generation:7\n"));
  EXPECT_THAT(OpenSsl("verify -x509_strict -CAfile ca.crt -purpose sslclient leaf.crt"),
              HasSubstr("leaf.crt: OK"));
  for (const char* uri : {"", "urn:a b", "urn:\n"}) {
    wanted.uris = {uri};
    EXPECT_THAT(SignCsr(ca_, request.csr_pem, wanted), StatusIs(absl::StatusCode::kInvalidArgument))
        << uri;
  }
}

TEST_F(PkiTest, NoticesAKeyThatBelongsToAnotherCertificate) {
  const CertificateAndKey other = *MakeCa("other", {kNow, absl::Hours(1)});
  EXPECT_THAT(CheckPair(ca_), IsOk());
  EXPECT_THAT(CheckPair({ca_.certificate_pem, other.key_pem}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(PkiTest, APairIsKeptAsOneText) {
  const absl::StatusOr<CertificateAndKey> pair = ParsePair(PairText(ca_));
  ASSERT_THAT(pair, IsOk());
  EXPECT_EQ(pair->certificate_pem, ca_.certificate_pem);
  EXPECT_EQ(pair->key_pem, ca_.key_pem);

  EXPECT_THAT(ParsePair(ca_.certificate_pem), StatusIs(absl::StatusCode::kDataLoss));
  const CertificateAndKey other = *MakeCa("other", {kNow, absl::Hours(1)});
  EXPECT_THAT(ParsePair(PairText({ca_.certificate_pem, other.key_pem})),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace assay
