// The site without its coordinator, which does not answer: what is decided before it is asked.

#include "server/web/site.h"

#include <future>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/pki.h"
#include "server/web/live.h"
#include "tests/support/fake_clock.h"
#include "tests/support/in_time.h"
#include "tests/support/status_matchers.h"

namespace assay::web {
namespace {

using assay::testing::FakeClock;
using assay::testing::InTime;
using assay::testing::IsOk;
using assay::testing::StatusIs;
using ::testing::HasSubstr;

class Asked final : public Exchange {
 public:
  explicit Asked(HttpRequest request) : request_(std::move(request)) {}
  const HttpRequest& request() const override { return request_; }
  void Send(HttpResponse response) override { answer.set_value(std::move(response)); }
  void Open(HttpResponse head, std::shared_ptr<ChunkSource>, std::string) override {
    answer.set_value(std::move(head));
  }
  void Write(std::string) override {}
  void Finish(std::string) override {}
  std::promise<HttpResponse> answer;

 private:
  const HttpRequest request_;
};

std::string HeaderOf(const HttpResponse& response, const std::string& name) {
  for (const HttpHeader& header : response.headers)
    if (header.name == name) return header.value;
  return "";
}

absl::StatusOr<Response> Page(const Context&, const Request&) {
  return Response{.body = "page"};
}

constexpr Route kRoutes[] = {{.pattern = "/", .page = Page},
                             {.pattern = "/forms", .page = Page, .takes_post = true}};

class SiteTest : public ::testing::Test {
 protected:
  SiteTest()
      : site_({.coordinator = {.target = "127.0.0.1:1",
                               .ca_pem = MakeCa("Test Authority", {absl::Now(), absl::Hours(1)})
                                             ->certificate_pem},
               .public_token = "assay_x",
               .origin = "https://site.example",
               .routes = kRoutes},
              &clock_) {}
  ~SiteTest() override { site_.Stop(); }

  HttpResponse Ask(HttpRequest request) {
    const auto asked = std::make_shared<Asked>(std::move(request));
    site_.Handle(asked);
    return InTime(asked->answer.get_future());
  }
  HttpResponse Post(const std::string& target, std::vector<HttpHeader> headers,
                    const std::string& body) {
    headers.push_back({"Content-Type", "application/x-www-form-urlencoded"});
    return Ask({.method = "POST", .target = target, .headers = std::move(headers), .body = body});
  }
  FakeClock clock_;
  Site site_;
};

TEST_F(SiteTest, OtherMethodsAreNamed) {
  for (const char* method : {"PUT", "DELETE", "OPTIONS", "TRACE", "x"}) {
    const HttpResponse response = Ask({.method = method, .target = "/"});
    EXPECT_EQ(response.status, 405) << method;
    EXPECT_EQ(HeaderOf(response, "Allow"), "GET, HEAD, POST");
  }
  EXPECT_EQ(HeaderOf(Post("/", {}, ""), "Allow"), "GET, HEAD");
  EXPECT_EQ(HeaderOf(Ask({.method = "POST", .target = "/static/app.css"}), "Allow"), "GET, HEAD");
  EXPECT_EQ(
      HeaderOf(Ask({.method = "GET", .target = "/assay.v1.AdminService/ListRounds"}), "Allow"),
      "POST");
}

TEST_F(SiteTest, ACoordinatorThatIsAwayIsSaid) {
  EXPECT_EQ(Ask({.method = "GET", .target = "/"}).status, 503);
  EXPECT_EQ(Ask({.method = "GET", .target = "/none"}).status, 404);
  EXPECT_EQ(Ask({.method = "GET", .target = "/none.json"}).body,
            "{\"code\":\"not_found\",\"message\":\"there is no page /none\"}");
  EXPECT_EQ(Ask({.method = "GET", .target = "/%"}).status, 400);
}

TEST_F(SiteTest, AFormOfAnotherOriginIsRefusedBeforeAPageSeesIt) {
  for (const char* origin : {"https://evil.example", "null", "https://site.example:8443",
                             "http://site.example", "https://site.example.evil", ""}) {
    std::vector<HttpHeader> headers;
    if (*origin != '\0') headers.push_back({"Origin", origin});
    EXPECT_EQ(Post("/forms", headers, "").status, 403) << origin;
    EXPECT_EQ(Post("/signin", headers, "token=assay_x").status, 403) << origin;
    EXPECT_EQ(Post("/signout", headers, "").status, 403) << origin;
  }
  EXPECT_EQ(Post("/forms", {{"Origin", "https://site.example"}}, "").status, 401)
      << "nobody has signed in";
  EXPECT_EQ(Post("/signin", {{"Origin", "https://site.example"}}, "token=assay_x").status, 403)
      << "without the form's token";
}

TEST_F(SiteTest, TheFormToSignInIsBoundToTheBrowser) {
  const HttpResponse page = Ask({.method = "GET", .target = "/signin?code=%22%3E%3Cb%3E"});
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(HeaderOf(page, "Cache-Control"), "no-store");
  EXPECT_THAT(HeaderOf(page, "Set-Cookie"),
              AllOf(HasSubstr("__Host-assay-form="), HasSubstr("; Path=/; Secure; HttpOnly; "),
                    HasSubstr("SameSite=Strict")));
  EXPECT_THAT(page.body, HasSubstr("value=\"&quot;&gt;&lt;b&gt;\"")) << "the code is escaped";
  const std::string cookie = HeaderOf(page, "Set-Cookie").substr(0, 18 + 32);
  const size_t at = page.body.find("name=\"form_token\" value=\"") + 25;
  const std::string token = page.body.substr(at, page.body.find('"', at) - at);
  const HttpHeader origin{"Origin", "https://site.example"};

  // With both, the coordinator is asked, which is away.
  EXPECT_EQ(
      Post("/signin", {origin, {"Cookie", cookie}}, "token=assay_x&form_token=" + token).status,
      503);
  EXPECT_EQ(Post("/signin", {origin}, "token=assay_x&form_token=" + token).status, 403);
  EXPECT_EQ(Post("/signin", {origin, {"Cookie", cookie}}, "form_token=" + token).status, 400);
}

TEST_F(SiteTest, TheGatewayTakesJsonAndNothingElse) {
  const std::string method = "/assay.v1.AdminService/ListRounds";
  const auto ask = [&](const std::string& target, const std::string& type,
                       const std::string& body) {
    return Ask(
        {.method = "POST", .target = target, .headers = {{"Content-Type", type}}, .body = body});
  };
  for (const char* type :
       {"", "text/plain", "application/x-www-form-urlencoded", "application/jsonx",
        "application/json; charset=latin1", "application/proto"})
    EXPECT_EQ(ask(method, type, "{}").status, 415) << type;
  EXPECT_EQ(ask(method, "application/json; charset=UTF-8", "{}").status, 503);
  EXPECT_EQ(ask(method, "application/json", "{\"other\":1}").status, 400);
  EXPECT_EQ(ask(method, "application/json", "{").status, 400);
  EXPECT_EQ(ask(method, "application/json", std::string(100'000, '[')).status, 400);
}

TEST_F(SiteTest, AgentsAndStreamsOfClientsAreNotServed) {
  for (const char* target :
       {"/assay.v1.WorkerService/Synchronize", "/assay.v1.EnrolmentService/Enrol",
        "/assay.v1.SubmissionService/ImportSubmission", "/assay.v1.SubmissionService/None",
        "/assay.v1.None/ListRounds", "/assay.v1.AdminService", "/assay.v1.AdminService/ListRounds/",
        "/assay.v1.AdminService/ListRounds?x", "/assay.v1."}) {
    const HttpResponse response = Ask({.method = "POST",
                                       .target = target,
                                       .headers = {{"Content-Type", "application/json"}},
                                       .body = "{}"});
    EXPECT_EQ(response.status, 404) << target;
    EXPECT_THAT(response.body, HasSubstr("\"code\":\"unimplemented\"")) << target;
  }
}

TEST(LiveTest, AStreamGoesOnAfterWhatTheBrowserHasSeen) {
  const auto request = [](const std::string& target, std::vector<HttpHeader> headers) {
    const HttpRequest http{.method = "GET", .target = target, .headers = std::move(headers)};
    Request parsed{.path = "/runs/r-7/live"};
    if (const size_t at = target.find("after="); at != std::string::npos)
      parsed.query.Add("after", target.substr(at + 6));
    return LiveStream("r-7", http, parsed).status();
  };
  EXPECT_THAT(request("/runs/r-7/live?after=41", {}), IsOk());
  EXPECT_THAT(request("/runs/r-7/live", {{"Last-Event-ID", "41"}}), IsOk());
  for (const char* wrong : {"-1", "x", "1e3", "99999999999999999999"})
    EXPECT_THAT(request("/runs/r-7/live", {{"Last-Event-ID", wrong}}),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << wrong;
}

}  // namespace
}  // namespace assay::web
