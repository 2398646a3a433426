#include "server/web/web_config.h"

#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/pki.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::web {
namespace {

using assay::testing::IsOk;
using assay::testing::StatusIs;
using assay::testing::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kGood[] = R"(
listen_address: "127.0.0.1:8443"
url: "https://bench.example.org"
server_address: "localhost:7443"
ca_certificate_path: "ca.crt"
public_token_path: "public.token"
certificate_path: "web.crt"
key_path: "web.key"
)";

class WebConfigTest : public ::testing::Test {
 protected:
  WebConfigTest() {
    const Validity validity{.now = absl::Now(), .lifetime = absl::Hours(1)};
    const CertificateAndKey pair = *MakeCa("Test Authority", validity);
    EXPECT_THAT(WriteFileAtomic(dir_.Path("ca.crt"), pair.certificate_pem), IsOk());
    EXPECT_THAT(WriteFileAtomic(dir_.Path("web.crt"), pair.certificate_pem), IsOk());
    EXPECT_THAT(WriteFileAtomic(dir_.Path("web.key"), pair.key_pem), IsOk());
    EXPECT_THAT(WriteFileAtomic(dir_.Path("public.token"), " assay_x\n"), IsOk());
  }
  absl::StatusOr<v1::WebConfig> Parse(const std::string& text) {
    return ParseWebConfig(text, dir_.Path("web.textproto"));
  }
  const TempDir dir_;
};

TEST_F(WebConfigTest, PathsAreRelativeToItsFolder) {
  const auto config = Parse(kGood);

  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->key_path(), dir_.Path("web.key"));
  EXPECT_EQ(SiteOptionsOf(*config)->public_token, "assay_x");
  EXPECT_EQ(SiteOptionsOf(*config)->origin, "https://bench.example.org");
  EXPECT_EQ(HttpServerOptionsOf(*config)->limits.connections_max, HttpLimits().connections_max);
}

TEST_F(WebConfigTest, SaysAllProblemsAtOnce) {
  EXPECT_THAT(Parse(""), StatusIs(absl::StatusCode::kInvalidArgument,
                                  AllOf(HasSubstr("listen_address: is empty"), HasSubstr("url: "),
                                        HasSubstr("public_token_path: is empty"),
                                        HasSubstr("web.textproto: key_path"))));
  EXPECT_THAT(Parse("nonsense: 1"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("web.textproto:1:9")));
}

TEST_F(WebConfigTest, TheUrlIsAnOrigin) {
  for (const char* url :
       {"http://x", "https://", "https://x/", "https://x/path", "https://X", "x"}) {
    const std::string text = absl::StrReplaceAll(kGood, {{"https://bench.example.org", url}});
    EXPECT_THAT(Parse(text), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("url: ")))
        << url;
  }
}

TEST_F(WebConfigTest, FilesAreRead) {
  ASSERT_THAT(WriteFileAtomic(dir_.Path("public.token"), "\n"), IsOk());
  EXPECT_THAT(Parse(kGood), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is empty")));
  ASSERT_THAT(RemoveTree(dir_.Path("web.key")), IsOk());
  EXPECT_THAT(Parse(kGood), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("web.key")));
}

}  // namespace
}  // namespace assay::web
