// TFRecord files: framed records, plain or as one gzip stream over the whole file.
//
//   record := length (u64) masked_crc32c(length) (u32) payload masked_crc32c(payload) (u32)
//
// All integers are little-endian. The name of a file does not tell whether it is compressed; the
// reader is told. Both checksums are always verified.

#ifndef COMMON_DATASET_TFRECORD_H_
#define COMMON_DATASET_TFRECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/file.h"

namespace assay::dataset {

enum class Compression { kNone, kGzip };

// "none" or "gzip".
absl::string_view CompressionName(Compression compression);
// INVALID_ARGUMENT for any other text.
absl::StatusOr<Compression> ParseCompression(absl::string_view text);

// Bytes that framing adds to a payload.
inline constexpr int64_t kFrameBytes = 16;

// A file larger than this, compressed or not, is refused: it is not a sample.
inline constexpr int64_t kMaxFileBytes = int64_t{1} << 30;

// DATA_LOSS, and every other error that has a place in a file, carries the byte offset.
absl::Status ErrorAt(int64_t offset, absl::string_view problem);
// The offset that ErrorAt put there; none for other errors.
std::optional<int64_t> ErrorOffset(const absl::Status& status);

// `payload` as one framed record.
std::string FrameRecord(absl::string_view payload);

// `bytes` as one gzip stream, at zlib's default level; the same bytes for the same zlib.
std::string Gzip(absl::string_view bytes);

// Iterates over the records of a file's (uncompressed) bytes. The bytes must outlive the reader and
// the payloads it returns. Not thread-safe.
class RecordReader {
 public:
  explicit RecordReader(absl::string_view bytes) : bytes_(bytes) {}

  // The next payload; none at the end.
  // DATA_LOSS: checksum mismatch or truncated record, with its offset; the reader is of no further
  // use.
  absl::StatusOr<std::optional<absl::string_view>> Next();

 private:
  const absl::string_view bytes_;
  int64_t offset_ = 0;
};

// Reads whole files, reusing its buffers from one file to the next. Not thread-safe: one per
// thread.
class RecordFile {
 public:
  explicit RecordFile(Compression compression) : compression_(compression) {}

  // The uncompressed content of the file; valid until the next call. Blocks.
  // DATA_LOSS: broken gzip stream, with the offset in the compressed file. Other codes: the file
  // could not be read. Every message names the file.
  absl::StatusOr<absl::string_view> Read(const std::string& path);

  // The payload of a file that holds exactly one record; valid until the next call.
  // Errors as Read; DATA_LOSS also for a bad record or more than one. Offsets count uncompressed
  // bytes.
  absl::StatusOr<absl::string_view> ReadOnly(const std::string& path);

  // The bytes on disk of the file last read, also after an error in what they hold; empty if the
  // file could not be read. Valid until the next call.
  absl::string_view stored() const { return {stored_.data(), stored_size_}; }

 private:
  absl::Status Load(const UniqueFd& fd);
  absl::StatusOr<absl::string_view> Inflate();

  const Compression compression_;
  std::vector<char> stored_;    // only grows: the first stored_size_ bytes are the file
  std::vector<char> inflated_;  // only grows
  size_t stored_size_ = 0;
};

}  // namespace assay::dataset

#endif  // COMMON_DATASET_TFRECORD_H_
