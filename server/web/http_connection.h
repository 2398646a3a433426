// One client of the HTTP server, from its handshake to its end. Only for http_server.cc: the rest
// of the site sees http.h.

#ifndef SERVER_WEB_HTTP_CONNECTION_H_
#define SERVER_WEB_HTTP_CONNECTION_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>  // before Boost 1.74, which uses std::exchange without it

#include "server/web/http.h"
#include "server/web/http_server.h"
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

namespace assay::web {

class Connection;

// What all connections share; for the server's thread alone, but for the counts. `io` is destroyed
// first, and with it what still waits there.
struct ServerState {
  bool is_plain = false;  // then `tls` is not used
  boost::asio::ssl::context tls{boost::asio::ssl::context::tls_server};
  HttpLimits limits;
  HttpHandler* handler = nullptr;
  bool is_stopping = false;
  std::map<std::string, int> by_address;
  std::set<Connection*> connections;
  std::atomic<int64_t> connection_count = 0;
  std::atomic<int64_t> open_count = 0;
  std::atomic<int64_t> request_count = 0;
  std::atomic<int64_t> refused_count = 0;
  boost::asio::io_context io{1};
};

// For the server's thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  virtual ~Connection() = default;
  // The server ends: closes, unless a request waits for its answer, after which it closes.
  virtual void Stop() = 0;
  // Closes, whatever is on its way.
  virtual void Cut() = 0;
};

// Begins to serve a client; the connection keeps itself alive. `peer`: its address.
void StartConnection(boost::asio::ip::tcp::socket socket, std::string peer, ServerState* state);

}  // namespace assay::web

#endif  // SERVER_WEB_HTTP_CONNECTION_H_
