#include "server/web/answer.h"

#include <zlib.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/web/assets.h"
#include "server/web/compression.h"
#include "server/web/connect_error.h"

namespace assay::web {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string Header(const HttpResponse& response, const std::string& name) {
  for (const HttpHeader& header : response.headers)
    if (header.name == name) return header.value;
  return "";
}

std::string Gunzip(const std::string& bytes) {
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, 31), Z_OK);
  std::string out(1 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

const Visitor kPublic{.role = "public"};
const Visitor kAlice{.principal = "alice", .role = "reviewer"};

TEST(AnswerTest, EveryAnswerHasThePolicy) {
  for (const HttpResponse& response : {ToHttp({}, kPublic, {.body = "x"}), PlainResponse(405, "no"),
                                       AssetResponse({.target = AssetUrl("app.css")}),
                                       AssetResponse({.target = "/static/none"})}) {
    EXPECT_THAT(Header(response, "Content-Security-Policy"),
                AllOf(HasSubstr("default-src 'none'"), HasSubstr("script-src 'self';"),
                      HasSubstr("frame-ancestors 'none'"), Not(HasSubstr("unsafe"))));
    EXPECT_EQ(Header(response, "X-Content-Type-Options"), "nosniff");
    EXPECT_THAT(Header(response, "Strict-Transport-Security"), HasSubstr("max-age="));
    EXPECT_EQ(Header(response, "Cross-Origin-Opener-Policy"), "same-origin");
    EXPECT_EQ(Header(response, "Cross-Origin-Resource-Policy"), "same-origin");
    // With "no-referrer" browsers send "Origin: null" with forms, and no POST would pass.
    EXPECT_EQ(Header(response, "Referrer-Policy"), "same-origin");
  }
}

TEST(AnswerTest, WhatASessionSeesIsStoredNowhere) {
  EXPECT_EQ(Header(ToHttp({}, kAlice, {.body = "x"}), "Cache-Control"), "no-store");
  EXPECT_THAT(Header(ToHttp({}, kAlice, {.body = "x"}), "ETag"), IsEmpty());
  EXPECT_EQ(Header(ToHttp({}, kPublic, {.status = 404, .body = "x"}), "Cache-Control"), "no-store");
  EXPECT_EQ(Header(ToHttp({}, kPublic, {.body = "x", .headers = {{"Set-Cookie", "a=b"}}}),
                   "Cache-Control"),
            "no-store");
}

TEST(AnswerTest, APublicPageIsSentOnce) {
  const HttpResponse first = ToHttp({}, kPublic, {.body = "x"});
  const std::string tag = Header(first, "ETag");
  ASSERT_THAT(tag, HasSubstr("W/\""));

  HttpRequest again{.headers = {{"if-none-match", "\"other\", " + tag}}};
  EXPECT_EQ(ToHttp(again, kPublic, {.body = "x"}).status, 304);
  EXPECT_THAT(ToHttp(again, kPublic, {.body = "x"}).body, IsEmpty());
  EXPECT_EQ(ToHttp(again, kPublic, {.body = "changed"}).status, 200);
}

TEST(AnswerTest, TextIsCompressedForWhoTakesIt) {
  const std::string body(10'000, 'a');
  const HttpRequest takes{.headers = {{"Accept-Encoding", "br, gzip;q=0.8"}}};

  const HttpResponse packed = ToHttp(takes, kPublic, {.body = body});
  EXPECT_EQ(Header(packed, "Content-Encoding"), "gzip");
  EXPECT_EQ(Header(packed, "Vary"), "Accept-Encoding");
  EXPECT_LT(packed.body.size(), 200u);
  EXPECT_EQ(Gunzip(packed.body), body);

  EXPECT_EQ(ToHttp({}, kPublic, {.body = body}).body, body);
  EXPECT_EQ(ToHttp(takes, kPublic, {.body = "small"}).body, "small");
  EXPECT_EQ(ToHttp(takes, kPublic, {.content_type = "image/png", .body = body}).body, body);
}

TEST(AnswerTest, KnowsWhoTakesGzip) {
  for (const char* header : {"gzip", "GZIP", "deflate, gzip", "gzip;q=0.5", "*", "br;q=1, *;q=0.1"})
    EXPECT_TRUE(AcceptsGzip(header)) << header;
  for (const char* header : {"", "br", "gzip;q=0", "gzip; q=0.000", "x-gzipped", "identity"})
    EXPECT_FALSE(AcceptsGzip(header)) << header;
}

TEST(AnswerTest, AssetsAreKeptForTheirVersion) {
  const HttpResponse now = AssetResponse({.target = AssetUrl("live.js")});
  EXPECT_EQ(now.status, 200);
  EXPECT_THAT(Header(now, "Cache-Control"), HasSubstr("immutable"));
  EXPECT_THAT(Header(now, "Content-Type"), HasSubstr("text/javascript"));

  EXPECT_EQ(Header(AssetResponse({.target = "/static/live.js?v=old"}), "Cache-Control"),
            "no-cache");
  const HttpRequest again{.target = "/static/live.js",
                          .headers = {{"If-None-Match", Header(now, "ETag")}}};
  EXPECT_EQ(AssetResponse(again).status, 304);
  const HttpRequest packed{.target = "/static/live.js", .headers = {{"Accept-Encoding", "gzip"}}};
  EXPECT_EQ(Gunzip(AssetResponse(packed).body), now.body);
  for (const char* target : {"/static/", "/static/../main.cc", "/static/none.js"})
    EXPECT_EQ(AssetResponse({.target = target}).status, 404) << target;
}

// The table of connectrpc.com/docs/protocol, "Error codes".
TEST(AnswerTest, ErrorsHaveTheStatusesOfConnect) {
  const struct {
    absl::StatusCode code;
    const char* name;
    int http;
  } cases[] = {
      {absl::StatusCode::kCancelled, "canceled", 499},
      {absl::StatusCode::kUnknown, "unknown", 500},
      {absl::StatusCode::kInvalidArgument, "invalid_argument", 400},
      {absl::StatusCode::kDeadlineExceeded, "deadline_exceeded", 504},
      {absl::StatusCode::kNotFound, "not_found", 404},
      {absl::StatusCode::kAlreadyExists, "already_exists", 409},
      {absl::StatusCode::kPermissionDenied, "permission_denied", 403},
      {absl::StatusCode::kResourceExhausted, "resource_exhausted", 429},
      {absl::StatusCode::kFailedPrecondition, "failed_precondition", 400},
      {absl::StatusCode::kAborted, "aborted", 409},
      {absl::StatusCode::kOutOfRange, "out_of_range", 400},
      {absl::StatusCode::kUnimplemented, "unimplemented", 501},
      {absl::StatusCode::kInternal, "internal", 500},
      {absl::StatusCode::kUnavailable, "unavailable", 503},
      {absl::StatusCode::kDataLoss, "data_loss", 500},
      {absl::StatusCode::kUnauthenticated, "unauthenticated", 401},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(ConnectCode(c.code), c.name);
    EXPECT_EQ(ConnectHttpStatus(c.code), c.http) << c.name;
  }
}

TEST(AnswerTest, ErrorsSayWhatOthersWroteSafely) {
  const absl::Status status = absl::NotFoundError("no run \"<b>\"\xFF\n");

  EXPECT_EQ(ErrorResponse(kPublic, status, /*is_json=*/true).body,
            "{\"code\":\"not_found\",\"message\":\"no run \\\"<b>\\\"\xEF\xBF\xBD\\n\"}");
  const Response page = ErrorResponse(kPublic, status, /*is_json=*/false);
  EXPECT_EQ(page.status, 404);
  EXPECT_THAT(page.body, AllOf(HasSubstr("no run &quot;&lt;b&gt;&quot;"),
                               HasSubstr("<h1>Not found</h1>"), Not(HasSubstr("<b>"))));
}

}  // namespace
}  // namespace assay::web
