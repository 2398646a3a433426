// The high-water mark: how far the event log was acknowledged, in a file of its own beside the
// database and its write-ahead log, so that a loss of acknowledged events is noticed at the next
// start.
//
// The file holds two lines that are written in turn, each with a number and a checksum: a write
// that a crash tears leaves the other. It has its size from the beginning, so a full disk does not
// keep it from being written. It is written after the commit and before the reply, so it is never
// ahead of the database.

#ifndef SERVER_STORE_MARK_H_
#define SERVER_STORE_MARK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/file.h"

namespace assay::store {

// The frames of the write-ahead log that hold acknowledged events.
struct WalExtent {
  uint32_t salt_first = 0;  // of the log's header: names this filling of the log
  uint32_t salt_second = 0;
  int64_t frame_count = 0;  // 0: the log does not matter
  bool operator==(const WalExtent&) const = default;
};

struct Mark {
  std::string identity;  // of the database: 32 hexadecimal digits, drawn when it was made
  int64_t seq = 0;       // the last event
  std::string chain;     // chain(seq), 32 bytes; see chain.h
  // The last numbers given, so that none is given again even if the database is lost.
  int64_t last_submission = 0;
  int64_t last_run = 0;
  int64_t last_token = 0;
  WalExtent wal;
  bool operator==(const Mark&) const = default;
};

// What a mark's file says.
struct MarkReading {
  std::optional<Mark> mark;           // the newer of the lines that can be read
  int64_t generation = 0;             // of that line
  std::vector<std::string> problems;  // of lines that cannot, though something was written there
};

// Nothing of either if there is no file. Errors are those of reading it.
absl::StatusOr<MarkReading> ReadMark(const std::string& path);

// Writes marks. Not thread-safe.
class MarkFile {
 public:
  // Opens the file, makes it if there is none or a damaged one, and writes `mark` to stable
  // storage.
  static absl::StatusOr<std::unique_ptr<MarkFile>> Open(const std::string& path, const Mark& mark);

  // The kernel has it afterwards: it outlives this process, not a loss of power.
  absl::Status Write(const Mark& mark);
  // Brings what was written to stable storage; nothing if that was done.
  absl::Status Sync();

 private:
  explicit MarkFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  const std::string path_;
  const UniqueFd fd_;
  int64_t generation_ = 0;  // of the last line that was written
  bool is_synced_ = true;
};

}  // namespace assay::store

#endif  // SERVER_STORE_MARK_H_
