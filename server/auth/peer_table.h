// Which user is behind a connection of the Unix socket.
//
// gRPC names a connection that it was handed as a descriptor by the descriptor's number ("fd:812"),
// and the kernel reuses numbers. So this table hands out the numbers itself, from a range above all
// others, and binds a number to the first user who gets it, for the life of the process: a call can
// outlive its connection, but whoever the number belongs to by then is still the same user.

#ifndef SERVER_AUTH_PEER_TABLE_H_
#define SERVER_AUTH_PEER_TABLE_H_

#include <sys/types.h>

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/file.h"
#include "common/mutex.h"

namespace assay::auth {

class PeerTable {
 public:
  struct Range {
    int first = 0;  // above every descriptor that the process opens otherwise
    int count = 0;  // connections at a time, at most
    int count_per_user = 0;
  };

  // The upper half of what RLIMIT_NOFILE allows, at most 4096 numbers; a quarter of them per user.
  static Range DefaultRange();

  explicit PeerTable(Range range);

  // Moves `connection` to a number bound to `uid`; the caller owns the descriptor returned.
  // RESOURCE_EXHAUSTED if the user, or all users, have too many connections. One thread only.
  absl::StatusOr<UniqueFd> Bind(UniqueFd connection, uid_t uid);

  // The user behind a peer named "fd:<number>"; nullopt if it is not one of ours. Thread-safe.
  std::optional<uid_t> UserOf(absl::string_view peer) const;

 private:
  // The index of a free number that is bound to `uid`, or else to nobody.
  absl::StatusOr<int> Choose(uid_t uid) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Range range_;
  mutable Mutex mutex_;
  std::vector<std::optional<uid_t>> users_ ABSL_GUARDED_BY(mutex_);  // by number - first
};

}  // namespace assay::auth

#endif  // SERVER_AUTH_PEER_TABLE_H_
