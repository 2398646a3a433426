// Compresses what is not written to or judged any more: the artifacts of submissions that have
// ended.

#ifndef SERVER_STORE_COMPRESSION_H_
#define SERVER_STORE_COMPRESSION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace assay::store {

// How far it is since it was made.
struct CompressionCounts {
  int64_t file_count = 0;   // that are smaller now
  int64_t saved_bytes = 0;  // by how much, in all
};

// Follows the event log from its beginning, so that nothing need be remembered from one start to
// the next: what is compressed already costs a look at its file. Beside a daemon that writes.
// Not thread-safe, but may move between threads.
class Compression {
 public:
  // Of the data directory. The database has to exist.
  static absl::StatusOr<std::unique_ptr<Compression>> Open(const std::string& data_directory);
  ~Compression();
  Compression(const Compression&) = delete;
  Compression& operator=(const Compression&) = delete;

  // One artifact, or a page of the log. False if nothing is left until further submissions end; ask
  // again later. An artifact whose bytes have changed is left to `verify`, and logged. Another
  // error leaves the artifact for the next call: RESOURCE_EXHAUSTED, the disk is full.
  absl::StatusOr<bool> Step();

  const CompressionCounts& counts() const;

 private:
  struct Work;
  explicit Compression(std::unique_ptr<Work> work);
  const std::unique_ptr<Work> work_;
};

}  // namespace assay::store

#endif  // SERVER_STORE_COMPRESSION_H_
