// The files of a coordinator's certificates and keys.

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/config.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Whoever mends one file shall not learn of the next one only then.
TEST(TlsConfigTest, AllFilesThatCannotBeReadAreNamedAtOnce) {
  const testing::TempDir dir;

  EXPECT_THAT(
      ParseServerConfig("data_directory: 'd' listen_address: '127.0.0.1:0' queue_limit: -1 "
                        "launcher { kind: 'attach' } "
                        "tls { ca_certificate_path: 'ca.crt' ca_key_path: 'ca.key' "
                        "certificate_path: 'server.crt' key_path: 'server.key' }",
                        dir.Path("assayd.textproto"))
          .status(),
      testing::StatusIs(absl::StatusCode::kInvalidArgument,
                        AllOf(HasSubstr("tls.ca_certificate_path: "),
                              HasSubstr("tls.ca_key_path: "), HasSubstr("tls.certificate_path: "),
                              HasSubstr("tls.key_path: "), HasSubstr("queue_limit: "))));
}

}  // namespace
}  // namespace assay
