#include "server/web/answer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "common/sha256.h"
#include "server/web/assets.h"
#include "server/web/compression.h"
#include "server/web/connect_error.h"
#include "server/web/frame.h"
#include "server/web/html.h"

namespace assay::web {
namespace {

// Below this gzip saves less than a packet.
constexpr size_t kCompressBytesMin = 1024;
constexpr char kContentPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

bool IsText(absl::string_view content_type) {
  return absl::StartsWith(content_type, "text/") ||
         absl::StartsWith(content_type, "application/json") ||
         absl::StartsWith(content_type, "application/x-ndjson") ||
         absl::StartsWith(content_type, "image/svg+xml");
}

// Whether an If-None-Match header names `tag` (RFC 9110, section 13.1.2: weak comparison).
bool IsNamed(absl::string_view if_none_match, absl::string_view tag) {
  for (absl::string_view one : absl::StrSplit(if_none_match, ',')) {
    one = absl::StripAsciiWhitespace(one);
    if (one == "*" || absl::StripPrefix(one, "W/") == absl::StripPrefix(tag, "W/")) return true;
  }
  return false;
}

void CompressBody(const HttpRequest& request, HttpResponse* response) {
  response->headers.push_back({"Vary", "Accept-Encoding"});
  if (response->body.size() < kCompressBytesMin || !AcceptsGzip(request.Header("Accept-Encoding")))
    return;
  response->body = Gzip(response->body);
  response->headers.push_back({"Content-Encoding", "gzip"});
}

}  // namespace

void AddSecurityHeaders(HttpResponse* response) {
  std::vector<HttpHeader>& headers = response->headers;
  headers.push_back({"Content-Security-Policy", kContentPolicy});
  headers.push_back({"X-Content-Type-Options", "nosniff"});
  // Not "no-referrer": with it browsers say "Origin: null" in the forms that they send (Fetch,
  // "append a request Origin header"), and the origin is what changing requests are known by.
  headers.push_back({"Referrer-Policy", "same-origin"});
  headers.push_back({"Strict-Transport-Security", "max-age=31536000"});
  headers.push_back({"Cross-Origin-Opener-Policy", "same-origin"});
  headers.push_back({"Cross-Origin-Resource-Policy", "same-origin"});
}

HttpResponse ToHttp(const HttpRequest& request, const Visitor& visitor, Response response) {
  HttpResponse http;
  http.status = response.status;
  for (auto& [name, value] : response.headers)
    http.headers.push_back({std::move(name), std::move(value)});
  AddSecurityHeaders(&http);
  // What a page shows depends on who asks: neither caches between nor other people see it.
  const bool is_public =
      !visitor.is_signed_in() && response.status == 200 &&
      http.headers.end() ==
          std::find_if(http.headers.begin(), http.headers.end(),
                       [](const HttpHeader& h) { return h.name == "Set-Cookie"; });
  http.headers.push_back({"Cache-Control", is_public ? "private, no-cache" : "no-store"});
  if (is_public) {
    const std::string tag = absl::StrCat("W/\"", Sha256Hex(response.body).substr(0, 32), "\"");
    http.headers.push_back({"ETag", tag});
    if (IsNamed(request.Header("If-None-Match"), tag)) {
      http.status = 304;
      return http;
    }
  }
  if (response.body.empty()) return http;
  http.headers.push_back({"Content-Type", response.content_type});
  http.body = std::move(response.body);
  if (IsText(response.content_type)) CompressBody(request, &http);
  return http;
}

Response ErrorResponse(const Visitor& visitor, const absl::Status& status, bool is_json) {
  const int code = ConnectHttpStatus(status.code());
  if (is_json) {
    return Response{
        .status = code, .content_type = "application/json", .body = ConnectErrorJson(status)};
  }
  std::string title = absl::StrReplaceAll(ConnectCode(status.code()), {{"_", " "}});
  title[0] = absl::ascii_toupper(static_cast<unsigned char>(title[0]));
  Html main;
  main.Raw("<h1>").Text(title).Raw("</h1><p class=\"message\">").Text(status.message()).Raw("</p>");
  if (!visitor.is_signed_in() && (code == 401 || code == 403 || code == 404))
    main.Raw("<p>Some things are shown to those who have <a href=\"/signin\">signed in</a>.</p>");
  Response response = HtmlPage(visitor, title, main);
  response.status = code;
  return response;
}

HttpResponse AssetResponse(const HttpRequest& request) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(request.target, absl::MaxSplits('?', 1));
  const Asset* const asset = FindAsset(absl::StripPrefix(parts.first, "/static/"));
  if (asset == nullptr) return PlainResponse(404, "no such file");
  HttpResponse response;
  AddSecurityHeaders(&response);
  const std::string tag = absl::StrCat("\"", asset->digest, "\"");
  // The link of this version (AssetUrl) is for ever; any other is asked for again.
  const bool is_version = parts.second == absl::StrCat("v=", asset->digest);
  response.headers.push_back(
      {"Cache-Control", is_version ? "public, max-age=31536000, immutable" : "no-cache"});
  response.headers.push_back({"ETag", tag});
  response.headers.push_back({"Vary", "Accept-Encoding"});
  if (IsNamed(request.Header("If-None-Match"), tag)) {
    response.status = 304;
    return response;
  }
  response.headers.push_back({"Content-Type", asset->content_type});
  const bool is_packed = !asset->gzip.empty() && AcceptsGzip(request.Header("Accept-Encoding"));
  if (is_packed) response.headers.push_back({"Content-Encoding", "gzip"});
  response.body = is_packed ? asset->gzip : asset->content;
  return response;
}

HttpResponse PlainResponse(int status, absl::string_view text) {
  HttpResponse response{.status = status,
                        .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
                        .body = absl::StrCat(text, "\n")};
  AddSecurityHeaders(&response);
  return response;
}

}  // namespace assay::web
