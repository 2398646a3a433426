// The gRPC server: services and limits. It has no listener; connections come through the gate.

#ifndef SERVER_API_SERVER_H_
#define SERVER_API_SERVER_H_

#include <grpcpp/server.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/pki.h"
#include "server/api/call_end.h"
#include "server/api/services.h"
#include "server/auth/authenticator.h"
#include "server/gate/connection_table.h"
#include "server/gate/gate.h"

namespace assay::api {

struct ListenOptions {
  std::string tcp_address;               // host:port, port 0: any free one; empty: none. TLS always
  std::string ca_pem;                    // whose client certificates are workers
  CertificateAndKey server_certificate;  // may hold a chain
  std::string unix_socket_path;          // empty: none
  bool is_socket_open_to_all = false;    // users other than the daemon's own and root may connect
  OnCallEnd on_call_end = {};            // empty: nobody wants to know
};

// OK if `options` can be listened on. FAILED_PRECONDITION if a TCP address comes without TLS:
// the coordinator speaks to the network in cipher only, also on loopback.
absl::Status CheckListenOptions(const ListenOptions& options);

class Server {
 public:
  // Starts to answer. `backend` (whose guard is filled in here) and `authenticator` must outlive
  // it. ALREADY_EXISTS or UNAVAILABLE if an address is taken.
  static absl::StatusOr<std::unique_ptr<Server>> Start(ListenOptions options,
                                                       const auth::Authenticator* authenticator,
                                                       Backend backend);
  // As Shutdown at once.
  ~Server();

  // The TCP address with its real port; empty if there is none.
  const std::string& tcp_address() const { return tcp_address_; }

  // Takes no more calls; those under way may end within `grace`, then they are cancelled. The core
  // must answer what it has parked, or this waits for it. Idempotent.
  void Shutdown(absl::Duration grace);

 private:
  struct Services;
  Server(Backend backend, const auth::Authenticator* authenticator);
  absl::Status Listen(const ListenOptions& options);

  gate::ConnectionTable connections_;
  Guard guard_;
  const Backend backend_;
  const std::unique_ptr<Services> services_;
  std::string tcp_address_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<gate::Gate> gate_;  // before server_ ends, it hands on no more
};

}  // namespace assay::api

#endif  // SERVER_API_SERVER_H_
