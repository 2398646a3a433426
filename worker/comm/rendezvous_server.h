// The store behind TcpRendezvous: one thread on rank 0 that serves all ranks over TCP.

#ifndef WORKER_COMM_RENDEZVOUS_SERVER_H_
#define WORKER_COMM_RENDEZVOUS_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/clock.h"
#include "common/file.h"

namespace assay::comm {

struct RendezvousServerOptions {
  std::string address = "127.0.0.1:0";  // host:port to listen on; port 0 takes a free one
  int world_size = 1;
  std::string run;    // its name: ranks of another cannot join; up to 256 bytes
  std::string token;  // what a rank must prove to know; 1 to 256 bytes. Never sent
};

// Accepts each rank of the world once, and proves to each that it knows the token too
// (handshake.h). Whoever does not know it, or has the wrong world size, a rank that is taken, or
// another protocol is told so and disconnected, as is one that has not joined within 10 s.
// Strangers may be many: beyond 64 the one that has been there longest is disconnected for the
// newest, so that a rank, which needs two round trips, gets in. Thread-safe.
class RendezvousServer {
 public:
  virtual ~RendezvousServer() = default;  // disconnects all ranks

  // Listens from now on. INVALID_ARGUMENT: bad address or token. UNAVAILABLE: cannot listen there.
  // `clock` must outlive the server.
  static absl::StatusOr<std::unique_ptr<RendezvousServer>> Start(
      const RendezvousServerOptions& options, const Clock* clock);
  // The same with a socket that listens already; `options.address` is not looked at.
  // INVALID_ARGUMENT: it does not.
  static absl::StatusOr<std::unique_ptr<RendezvousServer>> Start(
      const RendezvousServerOptions& options, UniqueFd listener, const Clock* clock);

  // "host:port" with the real port.
  virtual const std::string& address() const = 0;

  // Blocks until every rank has joined and left. DEADLINE_EXCEEDED names those that have not;
  // UNAVAILABLE if one was lost.
  virtual absl::Status WaitUntilAllLeft(MonoTime deadline) = 0;
};

}  // namespace assay::comm

#endif  // WORKER_COMM_RENDEZVOUS_SERVER_H_
