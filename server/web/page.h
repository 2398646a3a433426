// What a page of the site is: a function from a request to a response, which asks the coordinator
// as the visitor. It knows neither sockets nor cookies.
//
// A page is a row of server/web/routes.cc. It runs on a thread of its own and may block. An error
// that it returns becomes an error page of the fitting HTTP status, or JSON where JSON was asked
// for.

#ifndef SERVER_WEB_PAGE_H_
#define SERVER_WEB_PAGE_H_

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "common/client/client.h"
#include "server/web/course_cache.h"

namespace assay::web {

// Names with values, decoded, in the order of the request. A name may be there several times.
class Fields {
 public:
  using Pair = std::pair<std::string, std::string>;

  void Add(std::string name, std::string value) {
    pairs_.emplace_back(std::move(name), std::move(value));
  }
  // The first value of `name`; nullopt if it is not there.
  std::optional<absl::string_view> Find(absl::string_view name) const {
    for (const Pair& pair : pairs_)
      if (pair.first == name) return pair.second;
    return std::nullopt;
  }
  // The first value of `name`; empty if it is not there.
  std::string First(absl::string_view name) const {
    return std::string(Find(name).value_or(absl::string_view()));
  }
  std::vector<std::string> All(absl::string_view name) const {
    std::vector<std::string> values;
    for (const Pair& pair : pairs_)
      if (pair.first == name) values.push_back(pair.second);
    return values;
  }
  const std::vector<Pair>& pairs() const { return pairs_; }

 private:
  std::vector<Pair> pairs_;
};

// All text is what the visitor sent, decoded: nothing in it is to be trusted.
struct Request {
  std::string method;  // GET or POST; HEAD arrives as GET
  std::string path;    // /entries/e-42, without a suffix .csv or .json
  std::string format;  // "csv" or "json" if the path ended so, else empty: HTML
  std::string target;  // as it was sent, with the query: /entries/e-42.csv?columns=minutes
  Fields parameters;   // of the route's pattern: id
  Fields query;        // what follows "?"
  Fields form;         // of a POST, application/x-www-form-urlencoded
};

struct Response {
  int status = 200;
  std::string content_type = "text/html; charset=utf-8";
  std::string body;
  // More headers. Those of security, caching, length and compression are the server's.
  std::vector<std::pair<std::string, std::string>> headers;
};

// After a POST: the visitor's browser asks for `path` instead (303), a path of this site.
inline Response Redirect(std::string path) {
  return Response{.status = 303, .headers = {{"Location", std::move(path)}}};
}

// Who looks at a page. The coordinator decides what it shows them; pages say who it is.
struct Visitor {
  std::string principal;     // alice; empty for the public
  std::string role;          // submitter, reviewer, operator; "public" if nobody has signed in
  std::string organization;  // of a submitter
  // What every form that changes something sends back as the hidden field `form_token`; empty for
  // the public. The server refuses a POST without it before a page sees it.
  std::string form_token;

  bool is_signed_in() const { return !principal.empty(); }
};

struct Context {
  const client::Client& client;  // as the visitor
  const Visitor& visitor;
  absl::Time now;
  CourseCache& courses;
};

// Thread-safe: many threads call it at once.
using PageFunction = absl::StatusOr<Response> (*)(const Context& context, const Request& request);

struct Route {
  // Segments between slashes; one of the form {id} takes any text and is the parameter `id`. Of two
  // that fit the first one counts.
  absl::string_view pattern;  // "/entries/{id}"
  PageFunction page;
  bool takes_post = false;
};

// All pages: server/web/routes.cc.
std::span<const Route> Routes();

}  // namespace assay::web

#endif  // SERVER_WEB_PAGE_H_
