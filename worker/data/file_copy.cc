#include "worker/data/file_copy.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/log.h"
#include "common/status.h"

namespace assay::data {
namespace {

constexpr size_t kBufferBytes = size_t{2} << 20;
// What offsets, sizes and addresses of direct transfers are multiples of. Where a device wants
// more, it refuses, and the file goes through the page cache.
constexpr size_t kAlignment = 4096;
// From tmpfs to ext4 2.5 times as fast as 4 MiB, which leave the caches between reading and
// writing.
constexpr size_t kBufferedBytes = size_t{256} << 10;

// Read at once where the copy is in memory: 2 MiB have left the processor's caches when they are
// written, which costs a fifth of the rate, and requests of 5 ms do not mind.
constexpr size_t kReadToMemoryBytes = size_t{512} << 10;

// Turns O_DIRECT on or off; whether the file system takes it.
bool SetDirect(int fd, bool is_direct) {
  const int flags = fcntl(fd, F_GETFL);
  return fcntl(fd, F_SETFL, is_direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

// Where allocating blocks would clear every page before it is written, and nothing is passed.
bool IsInMemory(int fd) {
  struct statfs info {};
  return fstatfs(fd, &info) == 0 && (info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC);
}

class Reader {
 public:
  // `file` is at its beginning.
  Reader(UniqueFd file, const std::string& path) : file_(std::move(file)), path_(path) {
    // Set afterwards: a second open would be a second request.
    is_direct_ = SetDirect(file_.get(), true);
    if (!is_direct_) ReadInOrder();
  }

  // Up to `bytes` into `buffer`, which is as large as whole pages are; 0 at the end.
  absl::StatusOr<size_t> Read(char* buffer, size_t bytes) {
    for (;;) {
      // Whole pages: the end of the file cuts them short.
      const size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
      const ssize_t n = read(file_.get(), buffer, is_direct_ ? whole : bytes);
      if (n >= 0) return static_cast<size_t>(n);
      if (errno == EINTR) continue;
      if (errno != EINVAL || !is_direct_) return CopyError("cannot read", path_);
      is_direct_ = false;
      SetDirect(file_.get(), false);
      ReadInOrder();
    }
  }

  absl::StatusOr<int64_t> Size() const {
    struct stat info {};
    if (fstat(file_.get(), &info) != 0) return CopyError("cannot stat", path_);
    return info.st_size;
  }

 private:
  void ReadInOrder() { posix_fadvise(file_.get(), 0, 0, POSIX_FADV_SEQUENTIAL); }

  UniqueFd file_;
  const std::string& path_;
  bool is_direct_;
};

class Writer {
 public:
  // Empties the file or makes it. `bytes`: what will be written.
  static absl::StatusOr<Writer> Open(const std::string& path, int64_t bytes) {
    Writer writer(path);
    writer.file_ = UniqueFd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!writer.file_.is_open()) return CopyError("cannot create", path);
    writer.is_in_memory_ = IsInMemory(writer.file_.get());
    writer.is_direct_ = !writer.is_in_memory_ && SetDirect(writer.file_.get(), true);
    if (writer.is_direct_ && bytes > 0) RETURN_IF_ERROR(writer.Allocate(bytes));
    return writer;
  }

  absl::Status Write(absl::string_view bytes) {
    while (!bytes.empty()) {
      const size_t whole = bytes.size() / kAlignment * kAlignment;
      if (is_direct_ && whole == 0) WriteBuffered();
      const size_t piece = is_direct_ ? whole : std::min(bytes.size(), kBufferedBytes);
      const ssize_t n = write(file_.get(), bytes.data(), piece);
      if (n >= 0) {
        bytes.remove_prefix(static_cast<size_t>(n));
      } else if (errno == EINVAL && is_direct_) {
        WriteBuffered();
      } else if (errno != EINTR) {
        return CopyError("cannot write", *path_);
      }
    }
    return absl::OkStatus();
  }

  // How much of `bytes` to read before it is written.
  size_t PieceOf(size_t bytes) const {
    return is_in_memory_ ? std::min(bytes, kReadToMemoryBytes) : bytes;
  }

  UniqueFd Release() { return std::move(file_); }

 private:
  explicit Writer(const std::string& path) : path_(&path) {}

  // Not posix_fallocate: where the file system cannot, it writes every block.
  absl::Status Allocate(int64_t bytes) {
    while (fallocate(file_.get(), 0, 0, bytes) != 0) {
      if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)
        return CopyError(absl::StrCat("cannot allocate ", bytes, " bytes for"), *path_);
      if (errno != EINTR) break;
    }
    return absl::OkStatus();
  }

  void WriteBuffered() {
    is_direct_ = false;
    SetDirect(file_.get(), false);
  }

  UniqueFd file_;
  const std::string* path_;
  bool is_direct_ = false;
  bool is_in_memory_ = false;
};

absl::Status SizeChanged(const std::string& path, int64_t had, int64_t has) {
  return absl::DataLossError(
      absl::StrCat(path, " had ", had, " bytes, but ", has, " could be read: verify the dataset"));
}

}  // namespace

CopyBuffer::CopyBuffer(CopyBuffer&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)) {}

CopyBuffer& CopyBuffer::operator=(CopyBuffer&& other) noexcept {
  std::swap(memory_, other.memory_);
  return *this;
}

CopyBuffer::~CopyBuffer() {
  std::free(memory_);
}

std::span<char> CopyBuffer::bytes() {
  if (memory_ == nullptr) {
    // One large page, where the kernel has it: one fault instead of 512.
    memory_ = static_cast<char*>(std::aligned_alloc(kBufferBytes, kBufferBytes));
    CHECK(memory_ != nullptr);
    madvise(memory_, kBufferBytes, MADV_HUGEPAGE);
  }
  return {memory_, kBufferBytes};
}

absl::Status CopyError(absl::string_view what, const std::string& path) {
  const bool is_full = errno == ENOSPC || errno == EDQUOT;
  absl::Status status = absl::ErrnoToStatus(errno, absl::StrCat(what, " ", path));
  if (!is_full) return status;
  return absl::ResourceExhaustedError(absl::StrCat(
      status.message(), ": free space there, stage to a larger disk, or use more nodes"));
}

absl::StatusOr<CopiedFile> WritePieces(
    const std::string& target_path, int64_t bytes, CopyBuffer* buffer, Sha256* digest,
    absl::FunctionRef<absl::StatusOr<size_t>(std::span<char> memory)> next) {
  ASSIGN_OR_RETURN(Writer writer, Writer::Open(target_path, bytes));
  const std::span<char> memory = buffer->bytes().first(writer.PieceOf(buffer->bytes().size()));
  int64_t copied = 0;
  while (copied < bytes) {
    const size_t wanted =
        static_cast<size_t>(std::min<int64_t>(bytes - copied, static_cast<int64_t>(memory.size())));
    ASSIGN_OR_RETURN(const size_t n, next(memory.first(wanted)));
    if (n == 0) break;
    const absl::string_view piece(memory.data(), n);
    if (digest != nullptr) digest->Add(piece);
    RETURN_IF_ERROR(writer.Write(piece));
    copied += static_cast<int64_t>(n);
  }
  return CopiedFile{.target = writer.Release(), .bytes = copied};
}

absl::StatusOr<CopiedFile> CopyFile(const FileCopy& copy, CopyBuffer* buffer,
                                    absl::FunctionRef<void(int64_t bytes)> advance) {
  ASSIGN_OR_RETURN(UniqueFd source, OpenRegularFile(copy.source_path));
  Reader reader(std::move(source), copy.source_path);
  ASSIGN_OR_RETURN(const int64_t bytes, reader.Size());
  ASSIGN_OR_RETURN(CopiedFile copied,
                   WritePieces(copy.target_path, bytes, buffer, copy.digest,
                               [&](std::span<char> memory) -> absl::StatusOr<size_t> {
                                 ASSIGN_OR_RETURN(const size_t n,
                                                  reader.Read(memory.data(), memory.size()));
                                 advance(static_cast<int64_t>(n));
                                 return n;
                               }));
  // Asked again rather than read on: that would be one more request for each file.
  ASSIGN_OR_RETURN(const int64_t bytes_now, reader.Size());
  if (copied.bytes != bytes || bytes_now != bytes)
    return SizeChanged(copy.source_path, bytes,
                       copied.bytes < bytes ? copied.bytes : std::max(copied.bytes, bytes_now));
  return copied;
}

absl::StatusOr<std::string> DigestFile(const std::string& path, CopyBuffer* buffer,
                                       absl::FunctionRef<bool()> is_stopped) {
  ASSIGN_OR_RETURN(UniqueFd source, OpenRegularFile(path));
  const int fd = source.get();
  Reader reader(std::move(source), path);
  const std::span<char> memory = buffer->bytes();
  Sha256 digest;
  for (;;) {
    if (is_stopped()) return absl::CancelledError(absl::StrCat("stopped while reading ", path));
    ASSIGN_OR_RETURN(const size_t n, reader.Read(memory.data(), memory.size()));
    if (n == 0) break;
    digest.Add(absl::string_view(memory.data(), n));
  }
  // Where direct reads are refused.
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  return digest.HexDigest();
}

}  // namespace assay::data
