// Signing in and out: /signin and /signout.
//
// With a code, which 'assay web open' prints, or a token. Both are exchanged for a session here,
// and the browser has nothing but its id.

#ifndef SERVER_WEB_SIGN_IN_H_
#define SERVER_WEB_SIGN_IN_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/clock.h"
#include "common/rpc/endpoint.h"
#include "server/web/account.h"
#include "server/web/http.h"
#include "server/web/page.h"
#include "server/web/sessions.h"

namespace assay::web {

// Only HTTPS sites of this very host and path "/" can set or see such a cookie (RFC 6265bis).
inline constexpr absl::string_view kSessionCookie = "__Host-assay";
// Of a browser that has not signed in: what its form token is bound to.
inline constexpr absl::string_view kFormCookie = "__Host-assay-form";

// Thread-safe.
class SignIn {
 public:
  // All must outlive it. `coordinator` has no token.
  SignIn(Endpoint coordinator, Account* everybody, Sessions* sessions, const FormTokens* forms,
         const Clock* clock)
      : coordinator_(std::move(coordinator)),
        everybody_(everybody),
        sessions_(sessions),
        forms_(forms),
        clock_(clock) {}

  // The page with the forms. With a code in the query it offers to use that; it uses none itself,
  // so that whoever follows links ahead of people uses up no code.
  Response Page(const HttpRequest& http, const Request& request, const Visitor& visitor) const;

  // What the form sends: `code` or `token`. A redirection with the session's cookie.
  // PERMISSION_DENIED if the form is not ours, or the code is unknown or used; UNAUTHENTICATED if
  // the coordinator does not know the token. Blocks.
  absl::StatusOr<Response> Enter(const HttpRequest& http, const Request& request) const;

  // Ends the session of that id.
  Response Leave(absl::string_view session_id) const;

  // The cookie's end, for whoever's session has ended.
  static std::pair<std::string, std::string> ClearedCookie();

 private:
  absl::StatusOr<std::string> TokenOf(const Request& request) const;

  const Endpoint coordinator_;
  Account* const everybody_;
  Sessions* const sessions_;
  const FormTokens* const forms_;
  const Clock* const clock_;
};

}  // namespace assay::web

#endif  // SERVER_WEB_SIGN_IN_H_
