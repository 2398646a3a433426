#include "server/store/zstd_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"

namespace assay::store {
namespace {

// The longest beginning of a frame (RFC 8878, 3.1.1).
constexpr size_t kHeaderBytesMax = 18;
// Of published logs a higher one takes twice the time and no less room (ADR 0242).
constexpr int kLevel = 9;

// Up to `size` bytes of `fd`; fewer at the end alone.
absl::StatusOr<size_t> ReadUpTo(int fd, char* bytes, size_t size, const std::string& path) {
  size_t done = 0;
  while (done < size) {
    const ssize_t count = read(fd, bytes + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::ErrnoToStatus(errno, path);
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

}  // namespace

struct ZstdWriter::Stream {
  struct Free {
    void operator()(ZSTD_CCtx* freed) const { ZSTD_freeCCtx(freed); }
  };

  // Goes on until all input is taken, or at the end all output is written.
  absl::Status Run(absl::string_view bytes, ZSTD_EndDirective directive) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    while (true) {
      ZSTD_outBuffer out{buffer.data(), buffer.size(), 0};
      const size_t left = ZSTD_compressStream2(context.get(), &out, &in, directive);
      if (ZSTD_isError(left) != 0)
        return absl::InternalError(absl::StrCat(path, ": zstd: ", ZSTD_getErrorName(left)));
      RETURN_IF_ERROR(WriteAll(fd, absl::string_view(buffer.data(), out.pos)));
      const bool is_done = directive == ZSTD_e_end ? left == 0 : in.pos == in.size;
      if (is_done) return absl::OkStatus();
    }
  }

  const int fd;
  const std::string path;
  const std::unique_ptr<ZSTD_CCtx, Free> context{ZSTD_createCCtx()};
  std::string buffer = std::string(ZSTD_CStreamOutSize(), '\0');
};

ZstdWriter::ZstdWriter(int fd, std::string path, int64_t size_bytes)
    : stream_(new Stream{.fd = fd, .path = std::move(path)}) {
  ZSTD_CCtx* const context = stream_->context.get();
  CHECK(context != nullptr);
  CHECK(ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, kLevel)) == 0);
  CHECK(ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)) == 0);
  CHECK(ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(
            context, static_cast<unsigned long long>(size_bytes))) == 0);
}
ZstdWriter::~ZstdWriter() = default;

absl::Status ZstdWriter::Append(absl::string_view bytes) {
  return stream_->Run(bytes, ZSTD_e_continue);
}

absl::Status ZstdWriter::Finish() {
  return stream_->Run({}, ZSTD_e_end);
}

struct ZstdReader::Stream {
  struct Free {
    void operator()(ZSTD_DCtx* freed) const { ZSTD_freeDCtx(freed); }
  };

  // Whether there is more to decompress.
  absl::StatusOr<bool> Fill() {
    if (in.pos < in.size) return true;
    ASSIGN_OR_RETURN(in.size, ReadUpTo(fd.get(), buffer.data(), buffer.size(), path));
    in.pos = 0;
    return in.size > 0;
  }

  const UniqueFd fd;
  const std::string path;
  const std::unique_ptr<ZSTD_DCtx, Free> context{ZSTD_createDCtx()};
  std::string buffer = std::string(ZSTD_DStreamInSize(), '\0');
  ZSTD_inBuffer in{buffer.data(), 0, 0};
  bool is_in_frame = true;  // a file without a frame is cut off, too
  bool is_flushed = true;   // what was taken in is given out
};

ZstdReader::ZstdReader(UniqueFd fd, std::string path)
    : stream_(new Stream{.fd = std::move(fd), .path = std::move(path)}) {
  CHECK(stream_->context != nullptr);
}
ZstdReader::~ZstdReader() = default;

absl::StatusOr<std::string> ZstdReader::Read(size_t size) {
  std::string bytes(size, '\0');
  ZSTD_outBuffer out{bytes.data(), size, 0};
  Stream& stream = *stream_;
  while (out.pos < out.size) {
    ASSIGN_OR_RETURN(const bool is_more, stream.Fill());
    if (!is_more && stream.is_flushed) break;
    const size_t left = ZSTD_decompressStream(stream.context.get(), &out, &stream.in);
    if (ZSTD_isError(left) != 0)
      return absl::DataLossError(absl::StrCat("zstd: ", ZSTD_getErrorName(left)));
    stream.is_in_frame = left != 0;
    stream.is_flushed = left == 0 || out.pos < out.size;
  }
  bytes.resize(out.pos);
  if (bytes.empty() && stream.is_in_frame) return absl::DataLossError("zstd: it is cut off");
  return bytes;
}

absl::StatusOr<int64_t> ZstdContentSize(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, path);
  std::array<char, kHeaderBytesMax> header{};
  ASSIGN_OR_RETURN(const size_t size, ReadUpTo(fd.get(), header.data(), header.size(), path));
  const unsigned long long content = ZSTD_getFrameContentSize(header.data(), size);
  if (content == ZSTD_CONTENTSIZE_ERROR || content == ZSTD_CONTENTSIZE_UNKNOWN)
    return absl::DataLossError(absl::StrCat(path, " does not begin as a zstd file of ours"));
  return static_cast<int64_t>(content);
}

}  // namespace assay::store
