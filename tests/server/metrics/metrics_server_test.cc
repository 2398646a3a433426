// The port, asked by a client of HTTP.

#include "server/metrics/metrics_server.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/server/core/world.h"
#include "tests/server/metrics/series.h"
#include "tests/support/fake_clock.h"
#include "tests/support/http_get.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::metrics {
namespace {

using ::assay::testing::HttpAnswer;
using ::assay::testing::HttpGet;
using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using ::assay::testing::ValueOf;
using ::testing::HasSubstr;
using ::testing::Optional;

class MetricsServerTest : public ::testing::Test {
 protected:
  MetricsServerTest() {
    figures_.Open(
        {.version = "1.2.3",
         .start_time = absl::FromUnixSeconds(1'700'000'000),
         .database_path = dir_.Path("assay.db"),
         .disk_reserve_bytes = 5,
         .certificate_ends = {{"server", absl::FromUnixSeconds(1'800'000'000)}}},
        {.queue_length = [] { return size_t{17}; },
         .refused_calls =
             [] {
               return std::vector<std::pair<absl::StatusCode, int64_t>>{
                   {absl::StatusCode::kUnauthenticated, 4}};
             },
         .hooks = [] { return std::vector<HookView>{{.name = "mail", .delivered = 3}}; }});
    absl::StatusOr<std::unique_ptr<MetricsServer>> server =
        MetricsServer::Start({.listen_address = "127.0.0.1:0"}, &figures_);
    CHECK_OK(server.status());
    server_ = *std::move(server);
  }

  HttpAnswer Ask(const std::string& path, const std::string& method = "GET") {
    const absl::StatusOr<HttpAnswer> answer =
        HttpGet(absl::StrCat("http://", server_->address(), path), method);
    EXPECT_THAT(answer, IsOk());
    return answer.value_or(HttpAnswer{});
  }

  const assay::testing::TempDir dir_;
  assay::testing::FakeClock clock_;
  core::testing::World world_;
  Figures figures_{&clock_};
  std::unique_ptr<MetricsServer> server_;
};

TEST_F(MetricsServerTest, AScrapeHasWhatWasAskedAndCounted) {
  figures_.CallEnded("assay.v1.AdminService/ListTokens", absl::StatusCode::kPermissionDenied);
  figures_.CallEnded("assay.v1.AdminService/ListTokens", absl::StatusCode::kPermissionDenied);
  const HttpAnswer scrape = Ask("/metrics?x=y");

  EXPECT_EQ(scrape.status, 200);
  EXPECT_THAT(scrape.content_type, HasSubstr("text/plain; version=0.0.4"));
  const std::string& text = scrape.body;
  EXPECT_THAT(ValueOf(text,
                      "assay_rpcs_total{code=\"PERMISSION_DENIED\",method=\"assay.v1."
                      "AdminService/ListTokens\"}"),
              Optional(2))
      << text;
  EXPECT_THAT(ValueOf(text, "assay_command_queue_length"), Optional(17));
  EXPECT_THAT(ValueOf(text, "assay_refused_calls_total{code=\"UNAUTHENTICATED\"}"), Optional(4));
  EXPECT_THAT(ValueOf(text, "assay_notices_delivered_total{hook=\"mail\"}"), Optional(3));
  EXPECT_THAT(ValueOf(text, "assay_build_info{version=\"1.2.3\"}"), Optional(1));
  EXPECT_THAT(ValueOf(text, "assay_start_time_seconds"), Optional(1'700'000'000));
  EXPECT_THAT(ValueOf(text, "assay_certificate_end_time_seconds{certificate=\"server\"}"),
              Optional(1'800'000'000));
  EXPECT_THAT(ValueOf(text, "assay_data_directory_reserve_bytes"), Optional(5));
}

TEST_F(MetricsServerTest, ProbesSayWhetherItLivesAndIsReady) {
  EXPECT_EQ(Ask("/healthz").status, 200);
  const HttpAnswer before = Ask("/readyz");
  EXPECT_EQ(before.status, 503);
  EXPECT_THAT(before.body, HasSubstr("not ready: the core has not made its first turn"));
  figures_.observer()->TurnEnded(world_.core());
  EXPECT_EQ(Ask("/readyz").status, 200);
  figures_.observer()->CommitRefused(absl::ResourceExhaustedError("the disk is full"));
  EXPECT_EQ(Ask("/readyz").status, 503);
  EXPECT_EQ(Ask("/healthz").status, 200);
}

TEST_F(MetricsServerTest, NothingElseIsThere) {
  EXPECT_EQ(Ask("/metrics", "POST").status, 405);
  EXPECT_EQ(Ask("/metricsx").status, 404);
  EXPECT_EQ(Ask("/../etc/passwd").status, 404);
  EXPECT_THAT(Ask("/").body, HasSubstr("/metrics"));
}

TEST_F(MetricsServerTest, AnAddressThatCannotBeIsAnError) {
  EXPECT_THAT(MetricsServer::Start({.listen_address = server_->address()}, &figures_).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(server_->address())));
  EXPECT_THAT(MetricsServer::Start({.listen_address = "0.0.0.0:0"}, &figures_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not loopback")));
}

TEST(IsLoopbackTest, ByTheHost) {
  for (const char* address : {"127.0.0.1:1", "127.8.9.1:1", "localhost:1", "[::1]:1"})
    EXPECT_TRUE(IsLoopback(address)) << address;
  for (const char* address : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "127.0.0.1.example.org:1", ":1"})
    EXPECT_FALSE(IsLoopback(address)) << address;
}

}  // namespace
}  // namespace assay::metrics
