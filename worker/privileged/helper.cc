#include "worker/privileged/helper.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "common/log.h"
#include "common/status.h"
#include "worker/privileged/fanotify_group.h"

namespace assay::privileged {
namespace {

constexpr char kDropVerb[] = "drop_caches";
constexpr char kWatchVerb[] = "watch";
constexpr char kWatchReadsVerb[] = "watch_reads";
constexpr char kOk[] = "ok";
constexpr char kError[] = "error\n";
constexpr size_t kMessageBytesMax = 64 << 10;
constexpr int kRequestPatience_s = 5;
constexpr int kAnswerPatience_s = 300;  // a large tree is marked, much memory written back

struct Message {
  std::string text;
  UniqueFd fd;
};

absl::StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX};
  if (path.size() >= sizeof(address.sun_path))
    return absl::InvalidArgumentError(absl::StrCat(path, ": a socket's path has at most ",
                                                   sizeof(address.sun_path) - 1, " bytes"));
  std::memcpy(static_cast<char*>(address.sun_path), path.c_str(), path.size() + 1);
  return address;
}

void SetPatience(int fd, int seconds) {
  const timeval patience{.tv_sec = seconds};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

// `fd`, if there is one, travels along.
bool Send(int socket, std::string text, int fd) {
  iovec part{text.data(), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{.msg_iov = &part, .msg_iovlen = 1};
  if (fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

// nullopt: nothing came in time, or more than there may be.
std::optional<Message> Receive(int socket) {
  Message received{.text = std::string(kMessageBytesMax, '\0')};
  iovec part{received.text.data(), received.text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{.msg_iov = &part,
                 .msg_iovlen = 1,
                 .msg_control = control.data(),
                 .msg_controllen = control.size()};
  const ssize_t size = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (size > 0 && header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    received.fd = UniqueFd(fd);
  }
  if (size <= 0 || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return std::nullopt;
  received.text.resize(static_cast<size_t>(size));
  return received;
}

absl::StatusOr<Message> Ask(const std::string& socket_path, std::string request) {
  if (request.size() > kMessageBytesMax)
    return absl::UnavailableError("too many directories for one request");
  ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(socket_path));
  const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return absl::ErrnoToStatus(errno, "socket");
  SetPatience(socket.get(), kAnswerPatience_s);
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return absl::UnavailableError(
        absl::StrCat("no privileged helper at ", socket_path, ": ", strerror(errno)));
  if (!Send(socket.get(), std::move(request), -1))
    return absl::UnavailableError(absl::StrCat("the helper at ", socket_path, " takes nothing"));
  std::optional<Message> answer = Receive(socket.get());
  if (!answer.has_value())
    return absl::UnavailableError(absl::StrCat("the helper at ", socket_path, " does not answer"));
  if (answer->text == kOk) return *std::move(answer);
  return absl::FailedPreconditionError(absl::StrCat(
      "the helper at ", socket_path, " refuses: ", absl::StripPrefix(answer->text, kError)));
}

absl::Status CheckRoot(const std::string& real_path, const std::vector<std::string>& roots) {
  std::error_code error;
  const std::filesystem::path real = real_path;
  for (const std::string& root : roots) {
    const std::filesystem::path allowed = std::filesystem::canonical(root, error);
    if (error) continue;
    const auto [end, _] = std::mismatch(allowed.begin(), allowed.end(), real.begin(), real.end());
    if (end == allowed.end()) return absl::OkStatus();
  }
  return absl::PermissionDeniedError(absl::StrCat(
      real.string(), " is not below a --root of this helper: ", absl::StrJoin(roots, ", ")));
}

absl::StatusOr<UniqueFd> Carry(const std::string& request, const HelperOptions& options) {
  std::vector<std::string> words = absl::StrSplit(request, '\n');
  const std::string verb = std::exchange(words.front(), "");
  words.erase(words.begin());
  if (verb == kDropVerb && words.empty()) {
    RETURN_IF_ERROR(DropCaches(options.drop_caches_path));
    return UniqueFd();
  }
  if ((verb != kWatchVerb && verb != kWatchReadsVerb) || words.empty())
    return absl::InvalidArgumentError("no such request");
  ASSIGN_OR_RETURN(const std::vector<std::string> directories, WithChildren(words));
  return OpenFanotify(
      directories, verb == kWatchReadsVerb,
      [&options](const std::string& real_path) { return CheckRoot(real_path, options.roots); });
}

std::string PeerOf(int connection) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return "unknown";
  return absl::StrCat("uid=", peer.uid, " pid=", peer.pid);
}

}  // namespace

absl::Status DropCaches(const std::string& drop_caches_path, absl::string_view what) {
  const UniqueFd fd(open(drop_caches_path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, drop_caches_path);
  return WriteAll(fd.get(), what);
}

absl::Status AskToDropCaches(const std::string& socket_path) {
  return Ask(socket_path, kDropVerb).status();
}

absl::StatusOr<UniqueFd> AskToWatch(const std::string& socket_path,
                                    const std::vector<std::string>& directories,
                                    bool is_read_only) {
  ASSIGN_OR_RETURN(Message answer,
                   Ask(socket_path, absl::StrCat(is_read_only ? kWatchReadsVerb : kWatchVerb, "\n",
                                                 absl::StrJoin(directories, "\n"))));
  if (!answer.fd.is_open())
    return absl::UnavailableError(absl::StrCat("the helper at ", socket_path, " sent nothing"));
  return std::move(answer.fd);
}

absl::StatusOr<UniqueFd> Listen(const std::string& path, const std::string& group) {
  ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!listener.is_open()) return absl::ErrnoToStatus(errno, "socket");
  unlink(path.c_str());
  const mode_t mask = umask(0177);
  const int bound =
      bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  umask(mask);
  if (bound != 0) return absl::ErrnoToStatus(errno, path);
  if (!group.empty()) {
    const struct group* const entry = getgrnam(group.c_str());
    if (entry == nullptr) return absl::NotFoundError(absl::StrCat("there is no group ", group));
    if (chown(path.c_str(), static_cast<uid_t>(-1), entry->gr_gid) != 0 ||
        chmod(path.c_str(), 0660) != 0)
      return absl::ErrnoToStatus(errno, path);
  }
  if (listen(listener.get(), 16) != 0) return absl::ErrnoToStatus(errno, path);
  return listener;
}

absl::Status AnswerOne(int listener, const HelperOptions& options) {
  const UniqueFd connection(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!connection.is_open())
    return errno == EINTR || errno == ECONNABORTED ? absl::OkStatus()
                                                   : absl::ErrnoToStatus(errno, "accept");
  SetPatience(connection.get(), kRequestPatience_s);
  const std::optional<Message> request = Receive(connection.get());
  if (!request.has_value()) return absl::OkStatus();
  const absl::StatusOr<UniqueFd> done = Carry(request->text, options);
  LOG(INFO) << "asked by=" << PeerOf(connection.get()) << " request=" << Quoted(request->text)
            << " outcome=" << Quoted(done.status().ToString());
  if (!done.ok()) {
    Send(connection.get(), absl::StrCat(kError, done.status().message()), -1);
  } else {
    Send(connection.get(), kOk, done->is_open() ? done->get() : -1);
  }
  return absl::OkStatus();
}

}  // namespace assay::privileged
