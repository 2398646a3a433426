// The one way to gRPC, which has no listener of its own.
//
//   TCP, TLS with ALPN h2 and a certificate ─┐
//   Unix socket, user named by the kernel ───┼─ admitted? ─ yes: Relay ─▶ gRPC
//                                            │             └ no: Refusal
//   TCP, TLS with http/1.1 ──────────────────┴─ one question over HTTPS
//
// So no byte of somebody who is not known reaches gRPC's HTTP/2 parser, and the number of
// connections, of all and of each, is limited here (ADR 0132).

#ifndef SERVER_GATE_GATE_H_
#define SERVER_GATE_GATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/pki.h"
#include "server/auth/authenticator.h"
#include "server/gate/connection_table.h"
#include "server/gate/question.h"

namespace assay::gate {

class Gate {
 public:
  struct Options {
    std::string tcp_address;               // host:port, port 0: any free one; empty: none
    std::string ca_pem;                    // whose client certificates are taken
    CertificateAndKey server_certificate;  // may hold a chain
    std::string unix_socket_path;          // empty: none
    int unix_socket_mode = 0600;

    ConnectionTable* connections = nullptr;  // outlives the gate
    // Who that is, or why it may not be connected; asked at first and then about once a second.
    std::function<absl::StatusOr<auth::Identity>(const auth::Evidence&)> identify;
    // Gets a connected descriptor that `connections` has numbered, and must close it.
    std::function<void(int fd)> on_connection;
    // Somebody who is known was not admitted. Often called: it must limit what it logs.
    std::function<void(const std::string& peer, const absl::Status& reason)> on_refusal;
    uint32_t message_bytes_max = 4 << 20;  // of one message to gRPC
    OnQuestion on_question;
    // For a stranger's whole visit: a slow line has time for a handshake and 20 KiB.
    absl::Duration visit_max = absl::Seconds(10);
  };
  // All functions are called on threads of the gate, and must be thread-safe and not block.

  // Listens. INVALID_ARGUMENT, ALREADY_EXISTS or UNAVAILABLE if that is impossible.
  static absl::StatusOr<std::unique_ptr<Gate>> Start(Options options);

  // Stops listening, ends all connections, and removes the Unix socket.
  ~Gate();
  // Only stops listening: afterwards `on_connection` is not called. Idempotent.
  void StopListening();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // The TCP address with its real port; empty if there is none.
  const std::string& tcp_address() const;

 private:
  class Door;
  explicit Gate(std::unique_ptr<Door> door);

  const std::unique_ptr<Door> door_;
};

}  // namespace assay::gate

#endif  // SERVER_GATE_GATE_H_
