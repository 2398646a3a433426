// The port at which rank 0 of somebody else's program listens.

#ifndef WORKER_AGENT_PROGRAM_PORT_H_
#define WORKER_AGENT_PROGRAM_PORT_H_

#include <utility>

#include "absl/status/statusor.h"

#include "common/file.h"

namespace assay::agent {

// Holds a port, and listens at it never: only a socket with SO_REUSEADDR can be bound there beside
// ours, which is what those who listen have (Python's socket.create_server, PyTorch's store, Gloo),
// and the kernel gives the port to nobody who asks for any.
class ProgramPort {
 public:
  // One that the kernel chooses, of all addresses of this node. The errno's code if there is none.
  static absl::StatusOr<ProgramPort> Open();

  int port() const { return port_; }

 private:
  ProgramPort(UniqueFd fd, int port) : fd_(std::move(fd)), port_(port) {}
  UniqueFd fd_;
  int port_;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_PROGRAM_PORT_H_
