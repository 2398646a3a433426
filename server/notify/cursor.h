// How far a hook has been told, kept over the ends of the daemon.

#ifndef SERVER_NOTIFY_CURSOR_H_
#define SERVER_NOTIFY_CURSOR_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/notify/notice.h"

namespace assay::notify {

// Events up to `seq` are settled: told, given up, or nothing to tell. `away` is as after them.
struct Cursor {
  int64_t seq = 0;
  AwayNodes away;
  bool operator==(const Cursor&) const = default;
};

// The file at `path`; nullopt if there is none. DATA_LOSS, with the remedy, if it is not as it was
// written.
absl::StatusOr<std::optional<Cursor>> ReadCursor(const std::string& path);

// Durable when it returns OK (WriteFileAtomic).
absl::Status WriteCursor(const std::string& path, const Cursor& cursor);

}  // namespace assay::notify

#endif  // SERVER_NOTIFY_CURSOR_H_
