#include "worker/agent/program_port.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "absl/status/status.h"

namespace assay::agent {

absl::StatusOr<ProgramPort> ProgramPort::Open() {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (!fd.is_open() || setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
      bind(fd.get(), generic, size) != 0 || getsockname(fd.get(), generic, &size) != 0)
    return absl::ErrnoToStatus(errno, "cannot hold a port for programs");
  return ProgramPort(std::move(fd), ntohs(address.sin_port));
}

}  // namespace assay::agent
