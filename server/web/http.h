// One HTTP request and its answer, between what speaks HTTP (http_server.h) and what knows the
// site.

#ifndef SERVER_WEB_HTTP_H_
#define SERVER_WEB_HTTP_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace assay::web {

struct HttpHeader {
  std::string name;
  std::string value;
};

// What a client sent. Well-formed as HTTP; nothing in it is decoded or to be trusted.
struct HttpRequest {
  std::string method;  // GET
  std::string target;  // /entries/e-42?columns=minutes
  std::vector<HttpHeader> headers;
  std::string body;
  std::string peer;  // its address, without the port

  // The first header of that name, which is not case-sensitive; empty if there is none.
  absl::string_view Header(absl::string_view name) const {
    for (const HttpHeader& header : headers)
      if (absl::EqualsIgnoreCase(header.name, name)) return header.value;
    return "";
  }
};

struct HttpResponse {
  int status = 200;
  std::vector<HttpHeader> headers;
  std::string body;
};

// Fills a response whose end is not known when it begins. Its functions are called on the server's
// thread, one at a time, and must not block.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  // The client has all that was written: one Exchange::Write or Exchange::Finish shall follow, now
  // or later. So what is made waits for the client, and a slow one holds one piece of it.
  virtual void Next() = 0;
  // The client has gone, or is to go because the server ends: nothing need follow, and no function
  // is called afterwards. It lets go of the exchange, by which the connection is kept.
  virtual void Gone() = 0;
};

// A request that waits for its answer: Send once, or else Open and then Write as the source is
// asked. Thread-safe. Forgetting one answers with 500. What is sent to a client that has gone is
// dropped.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const HttpRequest& request() const = 0;

  virtual void Send(HttpResponse response) = 0;

  // Sends `head`, whose body is empty, and keeps `source` until the end of the response.
  //   heartbeat: sent while nothing else is for a while, so that neither side takes the other for
  //   gone; empty for none.
  virtual void Open(HttpResponse head, std::shared_ptr<ChunkSource> source,
                    std::string heartbeat) = 0;
  virtual void Write(std::string bytes) = 0;
  // Ends the response with these bytes, which may be none.
  virtual void Finish(std::string bytes) = 0;
};

// Who answers. Called on the server's thread, and must not block.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  virtual void Handle(std::shared_ptr<Exchange> exchange) = 0;
};

}  // namespace assay::web

#endif  // SERVER_WEB_HTTP_H_
