// Files of zstd frames: what is kept compressed, and read as it was.

#ifndef SERVER_STORE_ZSTD_FILE_H_
#define SERVER_STORE_ZSTD_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/file.h"

namespace assay::store {

// Compresses what it is given into a file. Not thread-safe.
class ZstdWriter {
 public:
  // Writes to `fd`, which has to stay open. `size_bytes`, of all that will be given, will stand at
  // the file's beginning. `path` is for messages.
  ZstdWriter(int fd, std::string path, int64_t size_bytes);
  ~ZstdWriter();
  ZstdWriter(const ZstdWriter&) = delete;
  ZstdWriter& operator=(const ZstdWriter&) = delete;

  // RESOURCE_EXHAUSTED if the disk is full.
  absl::Status Append(absl::string_view bytes);
  // Once, at the end. INTERNAL if it was given another number of bytes than was said.
  absl::Status Finish();

 private:
  struct Stream;
  const std::unique_ptr<Stream> stream_;
};

// The bytes of such a file, in pieces. Not thread-safe, but may move between threads.
class ZstdReader {
 public:
  // From the present place of `fd` on.
  ZstdReader(UniqueFd fd, std::string path);
  ~ZstdReader();
  ZstdReader(const ZstdReader&) = delete;
  ZstdReader& operator=(const ZstdReader&) = delete;

  // At most `size` bytes; empty at the end. DATA_LOSS if the file is damaged or cut off.
  absl::StatusOr<std::string> Read(size_t size);

 private:
  struct Stream;
  const std::unique_ptr<Stream> stream_;
};

// How many bytes the file at `path` says it has when it is read. NOT_FOUND; DATA_LOSS if its
// beginning is not that of a file of ours.
absl::StatusOr<int64_t> ZstdContentSize(const std::string& path);

}  // namespace assay::store

#endif  // SERVER_STORE_ZSTD_FILE_H_
