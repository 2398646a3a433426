// Looks at a write-ahead log without SQLite, which takes a damaged frame for the end of the log.

#ifndef SERVER_STORE_WAL_CHECK_H_
#define SERVER_STORE_WAL_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "server/store/mark.h"

namespace assay::store {

struct WalFault {
  int64_t frame = 0;         // counted from 1; 0: the header, or the whole file
  uint32_t page_number = 0;  // that the frame holds; 0: none
  std::string problem;       // "frame 7 of assay.db-wal, with page 3, is damaged: ..."
};

// What is wrong with the frames of `extent` in the log at `path`. A log that has been filled anew
// since is whole as far as `extent` knows: what it held before is in the database. Reads the file
// in pieces; a writer may append to it meanwhile, but if it begins anew the answer may be a fault
// that is none. Errors are those of reading.
absl::StatusOr<std::optional<WalFault>> CheckWal(const std::string& path, const WalExtent& extent);

}  // namespace assay::store

#endif  // SERVER_STORE_WAL_CHECK_H_
