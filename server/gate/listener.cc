#include "server/gate/listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "common/status.h"

namespace assay::gate {
namespace {

constexpr int kBacklog = SOMAXCONN;
constexpr size_t kIpv6GroupBytes = 8;

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, FreeAddresses>;

absl::StatusOr<AddressList> Resolve(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
  if (error == 0) return AddressList(list);
  return absl::InvalidArgumentError(
      absl::StrCat("listen_address: host \"", host, "\": ", gai_strerror(error)));
}

absl::StatusOr<UniqueFd> ListenAt(const addrinfo& address) {
  UniqueFd fd(socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, "cannot make a socket");
  const int on = 1;
  // A daemon that restarts takes its port back at once. Two on one port remain impossible.
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.ai_family == AF_INET6)
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  if (bind(fd.get(), address.ai_addr, address.ai_addrlen) != 0 || listen(fd.get(), kBacklog) != 0)
    return absl::ErrnoToStatus(errno, "cannot listen");
  return fd;
}

int PortOf(const UniqueFd& fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

absl::StatusOr<sockaddr_un> UnixAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("unix_socket_path \"", path, "\": give 1 to ",
                                                   sizeof(address.sun_path) - 1, " bytes"));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// Makes way for a new socket at `path`.
absl::Status RemoveStaleSocket(const std::string& path, const sockaddr_un& address) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISSOCK(info.st_mode)) {
    return absl::AlreadyExistsError(
        absl::StrCat(path, " exists and is not a socket: choose another unix_socket_path"));
  }
  const UniqueFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return absl::AlreadyExistsError(
        absl::StrCat("another process listens on ", path, ": stop it or choose another path"));
  }
  if (unlink(path.c_str()) != 0 && errno != ENOENT)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot remove the old socket ", path));
  return absl::OkStatus();
}

std::string HostText(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* const bytes =
      address.ss_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr)
          : &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  inet_ntop(address.ss_family, bytes, text.data(), text.size());
  return text.data();
}

}  // namespace

absl::StatusOr<TcpListeners> ListenTcp(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("listen_address: \"", address, "\" is not host:port, like 127.0.0.1:7443"));
  }
  std::string host = address.substr(0, colon);
  const std::string shown = host;
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]"))
    host = host.substr(1, host.size() - 2);
  ASSIGN_OR_RETURN(const AddressList list, Resolve(host, absl::StrCat(port)));
  TcpListeners listeners;
  absl::Status status;
  for (addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    // All of them on the port that the kernel chose for the first.
    if (port != 0 && entry->ai_family == AF_INET6)
      reinterpret_cast<sockaddr_in6*>(entry->ai_addr)->sin6_port =
          htons(static_cast<uint16_t>(port));
    if (port != 0 && entry->ai_family == AF_INET)
      reinterpret_cast<sockaddr_in*>(entry->ai_addr)->sin_port = htons(static_cast<uint16_t>(port));
    absl::StatusOr<UniqueFd> fd = ListenAt(*entry);
    if (!fd.ok()) {
      status = fd.status();
      continue;
    }
    port = PortOf(*fd);
    listeners.sockets.push_back(*std::move(fd));
  }
  // A name may stand for an address that this host does not have; one that works is enough, but
  // not while another daemon has the port on one of them.
  if (listeners.sockets.empty() || absl::IsAlreadyExists(status)) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address, " (", status.message(),
                     "): the port is taken, or the host is not this one"));
  }
  listeners.address = absl::StrCat(shown, ":", port);
  return listeners;
}

absl::StatusOr<UniqueFd> ListenUnix(const std::string& path, int mode) {
  ASSIGN_OR_RETURN(const sockaddr_un address, UnixAddress(path));
  RETURN_IF_ERROR(RemoveStaleSocket(path, address));
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, "cannot make a Unix socket");
  // Until listen() nobody can connect, so nobody gets in under a laxer mode.
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      chmod(path.c_str(), static_cast<mode_t>(mode)) != 0 || listen(fd.get(), kBacklog) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot listen on ", path));
  return fd;
}

std::string AddressText(const sockaddr_storage& address) {
  const bool is_ipv6 = address.ss_family == AF_INET6;
  const int port = ntohs(is_ipv6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                 : reinterpret_cast<const sockaddr_in&>(address).sin_port);
  const std::string host = HostText(address);
  return is_ipv6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

std::string AddressGroup(const sockaddr_storage& address) {
  if (address.ss_family != AF_INET6) return HostText(address);
  const in6_addr& bytes = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return std::string(reinterpret_cast<const char*>(bytes.s6_addr), kIpv6GroupBytes);
}

}  // namespace assay::gate
