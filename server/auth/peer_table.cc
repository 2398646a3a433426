#include "server/auth/peer_table.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/status.h"

namespace assay::auth {
namespace {

constexpr int kConnectionsMax = 4096;
constexpr int kDescriptorsAssumed = 1024;  // should getrlimit fail: the usual soft limit

bool IsFree(int fd) {
  return fcntl(fd, F_GETFD) == -1 && errno == EBADF;
}

}  // namespace

PeerTable::Range PeerTable::DefaultRange() {
  rlimit limit{};
  int descriptors = kDescriptorsAssumed;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    descriptors = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 20));
  const int count = std::min(descriptors / 2, kConnectionsMax);
  return Range{.first = descriptors - count, .count = count, .count_per_user = count / 4};
}

PeerTable::PeerTable(Range range) : range_(range), users_(static_cast<size_t>(range.count)) {}

absl::StatusOr<int> PeerTable::Choose(uid_t uid) const {
  int bound_count = 0;
  std::optional<int> unused;
  for (int i = 0; i < range_.count; ++i) {
    const std::optional<uid_t>& user = users_[static_cast<size_t>(i)];
    if (user == uid) {
      if (IsFree(range_.first + i)) return i;
      ++bound_count;
    } else if (!user.has_value() && !unused.has_value() && IsFree(range_.first + i)) {
      unused = i;
    }
  }
  if (bound_count >= range_.count_per_user)
    return absl::ResourceExhaustedError(absl::StrCat("too many connections of uid ", uid));
  if (!unused.has_value()) return absl::ResourceExhaustedError("too many connections of all users");
  return *unused;
}

absl::StatusOr<UniqueFd> PeerTable::Bind(UniqueFd connection, uid_t uid) {
  MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const int chosen, Choose(uid));
  UniqueFd moved(fcntl(connection.get(), F_DUPFD_CLOEXEC, range_.first + chosen));
  if (moved.get() != range_.first + chosen)
    return absl::ResourceExhaustedError("cannot number a connection: out of descriptors");
  users_[static_cast<size_t>(chosen)] = uid;
  return moved;
}

std::optional<uid_t> PeerTable::UserOf(absl::string_view peer) const {
  int number = 0;
  if (!absl::ConsumePrefix(&peer, "fd:") || !absl::SimpleAtoi(peer, &number)) return std::nullopt;
  if (number < range_.first || number >= range_.first + range_.count) return std::nullopt;
  MutexLock lock(&mutex_);
  return users_[static_cast<size_t>(number - range_.first)];
}

}  // namespace assay::auth
