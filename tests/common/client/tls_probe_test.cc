#include "common/client/tls_probe.h"

#include <csignal>
#include <optional>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/https_server.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::client {
namespace {

using ::assay::testing::StatusIs;
using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(30);

TEST(TlsProbeTest, SaysUntilWhenTheServersCertificateIsValid) {
  const testing::TempDir dir;
  ASSERT_NE(std::signal(SIGPIPE, SIG_IGN), SIG_ERR);  // of the server, whose client leaves early
  const testing::HttpsServer server(dir.path(), [](const std::string&) { return std::nullopt; });
  const absl::Time before = absl::Now() + absl::Hours(1);
  const absl::StatusOr<absl::Time> end =
      ProbeCertificateEnd(server.Url("").substr(std::string("https://").size()), kPatience);
  ASSERT_THAT(end, testing::IsOk());
  // It was made for an hour, a moment ago.
  EXPECT_LE(*end, before);
  EXPECT_GT(*end, before - absl::Minutes(30));
}

TEST(TlsProbeTest, WhatIsNotReachedIsSaid) {
  EXPECT_THAT(ProbeCertificateEnd("127.0.0.1:1", kPatience),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("cannot connect to 127.0.0.1:1")));
  EXPECT_THAT(ProbeCertificateEnd("no.such.host.invalid:443", kPatience),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no.such.host.invalid")));
  for (const char* address : {"", "localhost", ":443", "localhost:"})
    EXPECT_THAT(ProbeCertificateEnd(address, kPatience),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not host:port")))
        << address;
}

}  // namespace
}  // namespace assay::client
