#include "worker/comm/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/status.h"

namespace assay::comm {
namespace {

constexpr int kListenBacklog = 128;

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

absl::Status UnavailableErrno(int error, absl::string_view what) {
  return absl::UnavailableError(absl::ErrnoToStatus(error, what).message());
}

absl::StatusOr<AddressList> Resolve(absl::string_view address, int flags) {
  ASSIGN_OR_RETURN(const HostPort host_port, ParseHostPort(address));
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host_port.host.c_str(), host_port.port.c_str(), &hints, &list);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot resolve \"", address, "\": ", gai_strerror(error)));
  }
  return AddressList(list, &freeaddrinfo);
}

void SetOption(int fd, int level, int name, int value) {
  // Failure costs latency or detection speed, not correctness.
  static_cast<void>(setsockopt(fd, level, name, &value, sizeof value));
}

// Small frames go out at once, and a peer whose machine vanished is noticed within 10 s.
void TuneConnection(int fd) {
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, 4);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, 2);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

int SocketError(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

std::string NumericAddress(const sockaddr_storage& storage, socklen_t size) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  const int error = getnameinfo(reinterpret_cast<const sockaddr*>(&storage), size, host,
                                sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  if (error != 0) return "?";
  if (storage.ss_family == AF_INET6) return absl::StrCat("[", host, "]:", port);
  return absl::StrCat(host, ":", port);
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(absl::string_view address) {
  const size_t colon = address.rfind(':');
  HostPort result;
  if (colon != absl::string_view::npos) {
    absl::string_view host = address.substr(0, colon);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
      host = host.substr(1, host.size() - 2);
    }
    result = HostPort{.host = std::string(host), .port = std::string(address.substr(colon + 1))};
  }
  const bool is_number = !result.port.empty() && result.port.size() <= 5 &&
                         std::all_of(result.port.begin(), result.port.end(),
                                     [](char c) { return c >= '0' && c <= '9'; });
  if (result.host.empty() || !is_number) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", address, "\" is not an address of the form host:port"));
  }
  return result;
}

absl::StatusOr<UniqueFd> ListenOn(absl::string_view address) {
  ASSIGN_OR_RETURN(const AddressList list, Resolve(address, AI_PASSIVE));
  int error = 0;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    UniqueFd fd(socket(entry->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd.is_open()) {
      SetOption(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
      if (bind(fd.get(), entry->ai_addr, entry->ai_addrlen) == 0 &&
          listen(fd.get(), kListenBacklog) == 0) {
        return fd;
      }
    }
    error = errno;
  }
  return UnavailableErrno(error, absl::StrCat("cannot listen on ", address));
}

absl::Status AdoptListener(int fd) {
  int is_listening = 0;
  socklen_t size = sizeof is_listening;
  if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) != 0 || is_listening == 0 ||
      fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("descriptor ", fd, " is no listening socket: rank 0 is to inherit one"));
  }
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> ConnectTo(absl::string_view address, const Clock& clock,
                                   MonoTime deadline) {
  ASSIGN_OR_RETURN(const AddressList list, Resolve(address, 0));
  int error = 0;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    UniqueFd fd(socket(entry->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd.is_open()) return UnavailableErrno(errno, "cannot make a socket");
    error = connect(fd.get(), entry->ai_addr, entry->ai_addrlen) == 0 ? 0 : errno;
    while (error == EINPROGRESS) {
      pollfd waiting = {.fd = fd.get(), .events = POLLOUT, .revents = 0};
      if (poll(&waiting, 1, PollTimeoutMs(clock, deadline, absl::Seconds(1))) > 0) {
        error = SocketError(fd.get());
      } else if (clock.Mono() >= deadline) {
        return absl::DeadlineExceededError(absl::StrCat("no answer from ", address));
      }
    }
    if (error == 0) {
      TuneConnection(fd.get());
      return fd;
    }
  }
  return UnavailableErrno(error, absl::StrCat("cannot connect to ", address));
}

UniqueFd AcceptFrom(int listener) {
  UniqueFd fd(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd.is_open()) TuneConnection(fd.get());
  return fd;
}

std::string LocalAddress(int fd) {
  sockaddr_storage storage = {};
  socklen_t size = sizeof storage;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return "?";
  return NumericAddress(storage, size);
}

std::string PeerAddress(int fd) {
  sockaddr_storage storage = {};
  socklen_t size = sizeof storage;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return "?";
  return NumericAddress(storage, size);
}

int PollTimeoutMs(const Clock& clock, MonoTime deadline, absl::Duration longest) {
  const absl::Duration left = std::min(deadline - clock.Mono(), longest);
  if (left <= absl::ZeroDuration()) return 0;
  // Rounded up: rounding down would spin through the last millisecond.
  return static_cast<int>(absl::ToInt64Milliseconds(left + absl::Microseconds(999)));
}

}  // namespace assay::comm
