#include "server/web/sign_in.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/web/frame.h"
#include "server/web/html.h"

namespace assay::web {
namespace {

// Attributes of every cookie: for this host over HTTPS alone, not for scripts, and not sent with
// what other sites ask for.
constexpr absl::string_view kCookieAttributes = "; Path=/; Secure; HttpOnly; SameSite=Strict";

std::pair<std::string, std::string> SetCookie(absl::string_view name, absl::string_view value,
                                              absl::Duration life) {
  return {"Set-Cookie", absl::StrCat(name, "=", value, kCookieAttributes,
                                     "; Max-Age=", absl::ToInt64Seconds(life))};
}

void AddForm(absl::string_view form_token, const Html& fields, Html* main) {
  main->Raw("<form method=\"post\" action=\"/signin\"><input type=\"hidden\" name=\"form_token\"")
      .Attribute("value", form_token)
      .Raw(">")
      .Add(fields)
      .Raw("<button>Sign in</button></form>");
}

// A role that people have. The site's own and agents' tokens open no session.
absl::Status CheckPerson(const v1::ServerInfo& info) {
  if (info.role() == "submitter" || info.role() == "reviewer" || info.role() == "operator")
    return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("the token is of ", info.principal(), ", role ", info.role(),
                   ", which is no person: use one that 'assay admin token create' made for you"));
}

}  // namespace

Response SignIn::Page(const HttpRequest& http, const Request& request,
                      const Visitor& visitor) const {
  std::string cookie = CookieValue(http.Header("Cookie"), kFormCookie);
  const bool is_new = cookie.empty();
  if (is_new) cookie = MakeCookieValue();
  const std::string form_token = forms_->Make(cookie);
  Html main;
  main.Raw("<h1>Sign in</h1>");
  if (const std::string code = request.query.First("code"); !code.empty()) {
    Html field;
    field.Raw("<input type=\"hidden\" name=\"code\"").Attribute("value", code).Raw(">");
    main.Raw("<p>The link that <code>assay web open</code> has printed signs you in on this ")
        .Raw("browser. It works once, within a minute.</p>");
    AddForm(form_token, field, &main);
  } else {
    main.Raw("<p>On a computer where the command <code>assay</code> knows you, ")
        .Raw("<code>assay web open</code> prints a link that signs you in.</p>")
        .Raw("<p>Or give your token. It stays in the memory of this site until you sign out, and ")
        .Raw("is not given to your browser.</p>");
    Html field;
    field.Raw("<p><label for=\"token\">Token</label> <input id=\"token\" name=\"token\" ")
        .Raw(
            "type=\"password\" autocomplete=\"off\" spellcheck=\"false\" size=\"44\" "
            "required></p>");
    AddForm(form_token, field, &main);
  }
  Response response = HtmlPage(visitor, "Sign in", main);
  if (is_new) response.headers.push_back(SetCookie(kFormCookie, cookie, Sessions::kLifetimeMax));
  return response;
}

absl::StatusOr<std::string> SignIn::TokenOf(const Request& request) const {
  const std::string code = request.form.First("code");
  if (code.empty()) {
    const std::string text = request.form.First("token");
    const std::string token(absl::StripAsciiWhitespace(text));
    if (token.empty()) return absl::InvalidArgumentError("the form has neither a code nor a token");
    return token;
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const client::Client> client, everybody_->Client());
  v1::RedeemWebCodeRequest redeem;
  redeem.set_code(code);
  ASSIGN_OR_RETURN(const v1::CreateTokenResponse created, client->Call(redeem));
  return created.secret();
}

absl::StatusOr<Response> SignIn::Enter(const HttpRequest& http, const Request& request) const {
  const std::string cookie = CookieValue(http.Header("Cookie"), kFormCookie);
  if (!forms_->Check(cookie, request.form.First("form_token"))) {
    return absl::PermissionDeniedError(
        "the form is not of a page that this site has just shown to your browser: go to /signin, "
        "with cookies allowed");
  }
  Endpoint endpoint = coordinator_;
  ASSIGN_OR_RETURN(endpoint.token, TokenOf(request));
  auto account = std::make_shared<Account>(std::move(endpoint), clock_);
  ASSIGN_OR_RETURN(const std::shared_ptr<const client::Client> client, account->Client());
  ASSIGN_OR_RETURN(const v1::ServerInfo info, client->Call(v1::GetServerInfoRequest()));
  RETURN_IF_ERROR(CheckPerson(info));
  Visitor visitor{
      .principal = info.principal(), .role = info.role(), .organization = info.organization()};
  // A session that the browser had is over: its id is not used on.
  sessions_->Close(CookieValue(http.Header("Cookie"), kSessionCookie));
  const absl::Time end = account->end();
  const std::string id = sessions_->Open(std::move(visitor), std::move(account), end);
  Response response = Redirect("/");
  response.headers.push_back(SetCookie(kSessionCookie, id, Sessions::kLifetimeMax));
  return response;
}

Response SignIn::Leave(absl::string_view session_id) const {
  sessions_->Close(session_id);
  Response response = Redirect("/");
  response.headers.push_back(ClearedCookie());
  return response;
}

std::pair<std::string, std::string> SignIn::ClearedCookie() {
  return SetCookie(kSessionCookie, "", absl::ZeroDuration());
}

}  // namespace assay::web
