// The socket on which other nodes' ranks will find a rank 0 of this node.

#ifndef WORKER_AGENT_RENDEZVOUS_LISTENER_H_
#define WORKER_AGENT_RENDEZVOUS_LISTENER_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"

#include "common/file.h"

namespace assay::agent {

// Listens from now until it is destroyed, so that nobody else ever gets the port. The agent accepts
// nothing: each run's rank 0 inherits the socket and does. Connections wait meanwhile.
class RendezvousListener {
 public:
  // At a port that the kernel chooses, of the address that `host` has; if that is no address of
  // this node, of all addresses. The errno's code if there is no socket to be had.
  static absl::StatusOr<RendezvousListener> Open(const std::string& host);

  int port() const { return port_; }
  int fd() const { return fd_.get(); }

 private:
  RendezvousListener(UniqueFd fd, int port) : fd_(std::move(fd)), port_(port) {}
  UniqueFd fd_;
  int port_;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_RENDEZVOUS_LISTENER_H_
