#include "server/auth/unix_listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"

namespace assay::auth {
namespace {

constexpr int kBacklog = 128;
// When descriptors run out, accept fails at once and for ever: look again after this long.
constexpr int kAcceptPauseMs = 100;

absl::StatusOr<sockaddr_un> AddressOf(const std::string& path) {
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

absl::StatusOr<UniqueFd> Listen(const std::string& path, int mode) {
  ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  RETURN_IF_ERROR(RemoveStaleSocket(path, address));
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, "cannot make a Unix socket");
  // Until listen() nobody can connect, so nobody gets in under a laxer mode.
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      chmod(path.c_str(), static_cast<mode_t>(mode)) != 0 || listen(fd.get(), kBacklog) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot listen on ", path));
  return fd;
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnixListener>> UnixListener::Start(Options options) {
  ASSIGN_OR_RETURN(UniqueFd socket, Listen(options.path, options.mode));
  UniqueFd stop(eventfd(0, EFD_CLOEXEC));
  if (!stop.is_open()) return absl::ErrnoToStatus(errno, "eventfd");
  return std::unique_ptr<UnixListener>(
      new UnixListener(std::move(options), std::move(socket), std::move(stop)));
}

UnixListener::UnixListener(Options options, UniqueFd socket, UniqueFd stop)
    : options_(std::move(options)), socket_(std::move(socket)), stop_(std::move(stop)) {
  thread_ = std::thread([this] { Run(); });
}

UnixListener::~UnixListener() {
  const uint64_t one = 1;
  CHECK(write(stop_.get(), &one, sizeof(one)) == sizeof(one));
  thread_.join();
  unlink(options_.path.c_str());
}

void UnixListener::Run() {
  std::array<pollfd, 2> entries = {pollfd{stop_.get(), POLLIN, 0},
                                   pollfd{socket_.get(), POLLIN, 0}};
  for (;;) {
    if (poll(entries.data(), entries.size(), -1) < 0) {
      if (errno == EINTR) continue;
      LOG(ERROR) << "unix socket: poll errno=" << errno;
      return;
    }
    if (entries[0].revents != 0) return;
    if (entries[1].revents != 0) Accept();
  }
}

void UnixListener::Accept() {
  UniqueFd connection(accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!connection.is_open()) {
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
    LOG(WARNING) << "unix socket: accept errno=" << errno;
    pollfd stop = {stop_.get(), POLLIN, 0};
    poll(&stop, 1, kAcceptPauseMs);
    return;
  }
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    LOG(WARNING) << "unix socket: no peer credentials, errno=" << errno;
    return;
  }
  absl::StatusOr<UniqueFd> numbered = options_.peers->Bind(std::move(connection), credentials.uid);
  if (!numbered.ok()) {
    LOG(WARNING) << "unix socket: refused uid=" << credentials.uid << " pid=" << credentials.pid
                 << " reason=\"" << numbered.status().message() << "\"";
    return;
  }
  options_.on_connection(numbered->Release());
}

}  // namespace assay::auth
