// One file, copied past the page cache where its file systems allow that.

#ifndef WORKER_DATA_FILE_COPY_H_
#define WORKER_DATA_FILE_COPY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/file.h"
#include "common/sha256.h"

namespace assay::data {

// Memory that direct transfers take, 2 MiB. Movable, not copyable.
class CopyBuffer {
 public:
  CopyBuffer() = default;
  CopyBuffer(CopyBuffer&& other) noexcept;
  CopyBuffer& operator=(CopyBuffer&& other) noexcept;
  ~CopyBuffer();

  // Allocated at the first call.
  std::span<char> bytes();

 private:
  char* memory_ = nullptr;
};

struct FileCopy {
  std::string source_path;
  std::string target_path;   // created, or emptied
  Sha256* digest = nullptr;  // gets what is read; null: nobody asks
};

struct CopiedFile {
  UniqueFd target;  // open for writing
  int64_t bytes = 0;
};

// `advance` is called with the bytes of each piece. Reads with O_DIRECT; where that is refused, at
// once or at any read, through the page cache, told that the file is read in order. Direct writes
// go to blocks that are allocated before, all but what follows the last whole page of the file, and
// what goes to a file system in memory. NOT_FOUND: no source. RESOURCE_EXHAUSTED: the target's disk
// is full. DATA_LOSS: the source changed its size meanwhile. INVALID_ARGUMENT: it is not a regular
// file. Else errno's code. What is left of the target after an error is the caller's to remove.
absl::StatusOr<CopiedFile> CopyFile(const FileCopy& copy, CopyBuffer* buffer,
                                    absl::FunctionRef<void(int64_t bytes)> advance);

// Writes what `next` gives, piece by piece, until `bytes` have come or it gives 0: then fewer.
// Pieces but the last are as large as the memory that it is told to fill. Blocks are allocated for
// all of it before. `digest`: as FileCopy's. Errors of `next`, and those of writing as CopyFile's.
absl::StatusOr<CopiedFile> WritePieces(
    const std::string& target_path, int64_t bytes, CopyBuffer* buffer, Sha256* digest,
    absl::FunctionRef<absl::StatusOr<size_t>(std::span<char> memory)> next);

// The SHA-256 of a file, in hexadecimal, read as CopyFile reads. Nothing of it stays in memory that
// was not there before. `is_stopped` is asked before each piece: then CANCELLED. Other errors as
// CopyFile's.
absl::StatusOr<std::string> DigestFile(const std::string& path, CopyBuffer* buffer,
                                       absl::FunctionRef<bool()> is_stopped);

// errno as a status, "<what> <path>: ...", with the remedy if a disk is full.
absl::Status CopyError(absl::string_view what, const std::string& path);

}  // namespace assay::data

#endif  // WORKER_DATA_FILE_COPY_H_
