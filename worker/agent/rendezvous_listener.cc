#include "worker/agent/rendezvous_listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

#include "absl/status/status.h"

#include "common/log.h"

namespace assay::agent {
namespace {

// Connections that wait for rank 0 to begin: those of all other ranks, at most 1,023, and strangers
// beside them. The kernel's limit (net.core.somaxconn, 4096) is above it.
constexpr int kBacklog = 2048;

// A listening socket at a new port of `address`; closed if that is impossible, errno says why.
UniqueFd ListenAt(const sockaddr* address, socklen_t size) {
  UniqueFd fd(socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.is_open() || bind(fd.get(), address, size) != 0 || listen(fd.get(), kBacklog) != 0)
    return UniqueFd();
  return fd;
}

UniqueFd ListenAtHost(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), "0", &hints, &found) != 0) return UniqueFd();
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found, &freeaddrinfo);
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    UniqueFd fd = ListenAt(entry->ai_addr, entry->ai_addrlen);
    if (fd.is_open()) return fd;
  }
  return UniqueFd();
}

UniqueFd ListenEverywhere() {
  sockaddr_in everywhere{};
  everywhere.sin_family = AF_INET;
  return ListenAt(reinterpret_cast<const sockaddr*>(&everywhere), sizeof(everywhere));
}

int PortOf(const UniqueFd& fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  // Both families have the port in the same place.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

}  // namespace

absl::StatusOr<RendezvousListener> RendezvousListener::Open(const std::string& host) {
  UniqueFd fd = ListenAtHost(host);
  if (!fd.is_open()) {
    LOG(WARNING) << "rendezvous_host \"" << host << "\" is no address of this node: ranks are "
                 << "expected on all of its addresses";
    fd = ListenEverywhere();
  }
  if (!fd.is_open())
    return absl::ErrnoToStatus(errno, "cannot listen for the ranks of runs (rendezvous)");
  const int port = PortOf(fd);
  return RendezvousListener(std::move(fd), port);
}

}  // namespace assay::agent
