// Who is behind each connection that was handed to gRPC.
//
// gRPC names a connection that it was handed as a descriptor by the descriptor's number ("fd:812"),
// and the kernel reuses numbers. So this table hands out the numbers itself, from a range above all
// others. A number is given again only once gRPC has closed it, which it does after the last call
// of the connection has ended (a test holds gRPC to that), and the one that lay idle longest comes
// first: whoever asks during a call gets the caller's evidence, not that of a successor.

#ifndef SERVER_GATE_CONNECTION_TABLE_H_
#define SERVER_GATE_CONNECTION_TABLE_H_

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/file.h"
#include "common/mutex.h"
#include "server/auth/authenticator.h"

namespace assay::gate {

// Thread-safe.
class ConnectionTable {
 public:
  struct Range {
    int first = 0;           // above every descriptor that the process opens otherwise
    int count = 0;           // connections at a time, at most
    int count_per_peer = 0;  // of one user, worker or token
    int reserved_count = 0;  // of `count`, that only operators get
  };

  // A quarter of what RLIMIT_NOFILE allows: each connection needs two numbers more below the range.
  static Range DefaultRange();

  explicit ConnectionTable(Range range);

  // Moves `connection` to a number that stands for `evidence`, until Release; the caller owns the
  // descriptor returned. Operators may have as many as there are. RESOURCE_EXHAUSTED if this peer,
  // or all peers, have too many.
  absl::StatusOr<UniqueFd> Bind(UniqueFd connection, const auth::Evidence& evidence,
                                bool is_operator);

  // The connection is over as far as we are concerned; gRPC may have calls of it left.
  void Release(int number);

  // The evidence behind a peer named "fd:<number>"; nullopt if it is not one of ours.
  std::optional<auth::Evidence> Find(absl::string_view peer) const;

  // "uid 1000", "worker w0", "token 5f3a...": whose connections are counted together, for people.
  static std::string PeerOf(const auth::Evidence& evidence);

  const Range& range() const { return range_; }

 private:
  // Takes the index out of idle_ that lay there longest and that gRPC has closed.
  std::optional<size_t> TakeIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Range range_;
  mutable Mutex mutex_;
  std::vector<std::optional<auth::Evidence>> evidence_ ABSL_GUARDED_BY(mutex_);  // number - first
  std::deque<size_t> idle_ ABSL_GUARDED_BY(mutex_);  // released, or never used; longest ago first
  std::map<std::string, int> counts_ ABSL_GUARDED_BY(mutex_);  // bound, by peer
};

}  // namespace assay::gate

#endif  // SERVER_GATE_CONNECTION_TABLE_H_
