// The one privileged process of a node whose agents are nobody special: it drops caches, and opens
// the eyes of the witness on datasets that its operator has named. Nothing else.
//
// A connection of AF_UNIX, SOCK_SEQPACKET, carries one request and one answer:
//   "drop_caches"                      "ok"
//   "watch\nDIRECTORY\n..."            "ok" and a fanotify descriptor of opens and reads
//   "watch_reads\nDIRECTORY\n..."      "ok" and one of reads
//   anything else, or what may not be  "error\nREASON"
// Who may connect is said by the socket's group and mode.

#ifndef WORKER_PRIVILEGED_HELPER_H_
#define WORKER_PRIVILEGED_HELPER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/file.h"

namespace assay::privileged {

inline constexpr char kSocketPath[] = "/run/assay/privileged.sock";
inline constexpr char kDropCachesPath[] = "/proc/sys/vm/drop_caches";

inline constexpr char kPagesAndInodes[] = "3";
inline constexpr char kInodes[] = "2";

// Writes `what` to `drop_caches_path`. Only clean pages go: whoever wants all of a file system's
// gone has them written back before (syncfs). PERMISSION_DENIED, NOT_FOUND: errno's.
absl::Status DropCaches(const std::string& drop_caches_path,
                        absl::string_view what = kPagesAndInodes);

// -------------------------------------------------------------------------------- asking a helper

// UNAVAILABLE if there is none at `socket_path` that answers within 5 minutes; FAILED_PRECONDITION
// with its reason if it refuses.
absl::Status AskToDropCaches(const std::string& socket_path);
absl::StatusOr<UniqueFd> AskToWatch(const std::string& socket_path,
                                    const std::vector<std::string>& directories, bool is_read_only);

// --------------------------------------------------------------------------------- being a helper

struct HelperOptions {
  std::vector<std::string> roots;  // directories, with all below them, that may be watched
  std::string drop_caches_path = kDropCachesPath;
};

// A socket that listens at `path`, where an old one is replaced, for `group` alone (empty: for this
// process's user). NOT_FOUND: there is no such group.
absl::StatusOr<UniqueFd> Listen(const std::string& path, const std::string& group);

// Answers the request of one connection, which is taken from `listener`. A peer that says nothing
// for 5 s is let go. Errors are of `listener` alone.
absl::Status AnswerOne(int listener, const HelperOptions& options);

}  // namespace assay::privileged

#endif  // WORKER_PRIVILEGED_HELPER_H_
