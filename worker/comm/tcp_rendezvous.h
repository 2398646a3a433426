// Rendezvous over TCP: every rank, rank 0 too, holds one connection to rank 0's server.
//
// The kernel closes the connection of a process that dies, however it dies; the server then tells
// all other ranks. So a death is known within a network round trip, long before any deadline.

#ifndef WORKER_COMM_TCP_RENDEZVOUS_H_
#define WORKER_COMM_TCP_RENDEZVOUS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "common/clock.h"
#include "worker/comm/rendezvous.h"
#include "worker/comm/rendezvous_server.h"

namespace assay::comm {

struct JoinOptions {
  std::string address;  // the server's host:port
  int rank = 0;
  int world_size = 1;
  std::string run;    // as the server's
  std::string token;  // as the server's. Never sent
};

// Connects, again and again until `deadline` while nobody listens yet, and joins.
//   server: kept until the result is destroyed; null on ranks that do not serve.
// DEADLINE_EXCEEDED: no server answered. UNAUTHENTICATED: who listens there does not know the
// token (another run's, or a stranger), and has learnt nothing. ALREADY_EXISTS: the rank has joined
// before. INVALID_ARGUMENT: bad address, or another world size than the server's.
absl::StatusOr<std::unique_ptr<Rendezvous>> JoinRendezvous(const JoinOptions& options,
                                                           std::unique_ptr<RendezvousServer> server,
                                                           const Clock* clock, MonoTime deadline);

}  // namespace assay::comm

#endif  // WORKER_COMM_TCP_RENDEZVOUS_H_
