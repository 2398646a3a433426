#include "common/dataset/tfrecord.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"

#include "common/dataset/crc32c.h"
#include "common/file.h"
#include "common/log.h"
#include "common/status.h"

namespace assay::dataset {
namespace {

static_assert(std::endian::native == std::endian::little, "the formats are read as they lie");

constexpr absl::string_view kOffsetPayload = "assay/offset";
constexpr int64_t kHeaderBytes = 12;  // length and its checksum
constexpr int64_t kFooterBytes = 4;   // checksum of the payload
// zlib: 15 bits of window, plus 16 for a gzip header instead of zlib's own.
constexpr int kGzipWindowBits = 31;
constexpr int kZlibDefaultMemory = 8;

template <typename T>
void AppendLittleEndian(T value, std::string* out) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out->append(bytes, sizeof(T));
}

template <typename T>
T LoadLittleEndian(absl::string_view bytes, int64_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// `status` with the file's name before its message, and its offset kept.
absl::Status InFile(const absl::Status& status, const std::string& path) {
  absl::Status named = Annotate(status, path);
  const absl::optional<absl::Cord> offset = status.GetPayload(kOffsetPayload);
  if (offset) named.SetPayload(kOffsetPayload, *offset);
  return named;
}

Bytef* ZlibBytes(const char* data) {
  // zlib takes its input without const, and does not write to it.
  return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(data));
}

}  // namespace

absl::string_view CompressionName(Compression compression) {
  switch (compression) {
    case Compression::kNone:
      return "none";
    case Compression::kGzip:
      return "gzip";
  }
  return "";
}

absl::StatusOr<Compression> ParseCompression(absl::string_view text) {
  for (const Compression compression : {Compression::kNone, Compression::kGzip})
    if (text == CompressionName(compression)) return compression;
  return absl::InvalidArgumentError(
      absl::StrCat("compression \"", text, "\" is neither \"none\" nor \"gzip\""));
}

absl::Status ErrorAt(int64_t offset, absl::string_view problem) {
  absl::Status status = absl::DataLossError(absl::StrCat("byte ", offset, ": ", problem));
  status.SetPayload(kOffsetPayload, absl::Cord(absl::StrCat(offset)));
  return status;
}

std::optional<int64_t> ErrorOffset(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kOffsetPayload);
  int64_t offset = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &offset)) return std::nullopt;
  return offset;
}

std::string FrameRecord(absl::string_view payload) {
  std::string record;
  record.reserve(payload.size() + static_cast<size_t>(kFrameBytes));
  AppendLittleEndian(uint64_t{payload.size()}, &record);
  AppendLittleEndian(MaskCrc(Crc32c(record)), &record);
  record.append(payload.data(), payload.size());
  AppendLittleEndian(MaskCrc(Crc32c(payload)), &record);
  return record;
}

std::string Gzip(absl::string_view bytes) {
  CHECK(static_cast<int64_t>(bytes.size()) <= kMaxFileBytes) << "bytes=" << bytes.size();
  z_stream stream{};
  CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindowBits,
                     kZlibDefaultMemory, Z_DEFAULT_STRATEGY) == Z_OK);
  const absl::Cleanup end = [&stream] { deflateEnd(&stream); };
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = ZlibBytes(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = ZlibBytes(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  return out;
}

absl::StatusOr<std::optional<absl::string_view>> RecordReader::Next() {
  const int64_t left = static_cast<int64_t>(bytes_.size()) - offset_;
  if (left == 0) return std::nullopt;
  if (left < kHeaderBytes)
    return ErrorAt(offset_, absl::StrCat("record cut short: ", left, " of the ", kHeaderBytes,
                                         " bytes of its header"));
  const uint64_t length = LoadLittleEndian<uint64_t>(bytes_, offset_);
  const uint32_t stored_crc = LoadLittleEndian<uint32_t>(bytes_, offset_ + 8);
  if (MaskCrc(Crc32c(bytes_.substr(static_cast<size_t>(offset_), 8))) != stored_crc)
    return ErrorAt(offset_, "checksum of the record's length does not match");
  const int64_t room = left - kHeaderBytes - kFooterBytes;
  if (room < 0 || length > static_cast<uint64_t>(room))
    return ErrorAt(offset_, absl::StrCat("record cut short: payload of ", length, " bytes, but ",
                                         left - kHeaderBytes, " bytes left"));
  const int64_t start = offset_ + kHeaderBytes;
  const int64_t size = static_cast<int64_t>(length);
  const absl::string_view payload = bytes_.substr(static_cast<size_t>(start), length);
  if (MaskCrc(Crc32c(payload)) != LoadLittleEndian<uint32_t>(bytes_, start + size))
    return ErrorAt(start, absl::StrCat("checksum of the payload (", length,
                                       " bytes from here) does not match"));
  offset_ = start + size + kFooterBytes;
  return payload;
}

absl::Status RecordFile::Load(const UniqueFd& fd) {
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return absl::ErrnoToStatus(errno, "cannot stat");
  if (info.st_size > kMaxFileBytes)
    return ErrorAt(kMaxFileBytes, absl::StrCat(info.st_size, " bytes: too large for a sample"));
  const size_t size = static_cast<size_t>(info.st_size);
  if (stored_.size() < size) stored_.resize(size);
  for (size_t done = 0; done < size;) {
    const ssize_t n = read(fd.get(), stored_.data() + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read at byte ", done));
    if (n == 0) return ErrorAt(static_cast<int64_t>(done), "file became shorter while it was read");
    done += static_cast<size_t>(n);
  }
  stored_size_ = size;
  return absl::OkStatus();
}

absl::StatusOr<absl::string_view> RecordFile::Inflate() {
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindowBits) != Z_OK)
    return absl::ResourceExhaustedError("no memory for zlib");
  const absl::Cleanup end = [&stream] { inflateEnd(&stream); };
  stream.next_in = ZlibBytes(stored_.data());
  stream.avail_in = static_cast<uInt>(stored_size_);
  for (;;) {
    if (stream.total_out == inflated_.size())
      inflated_.resize(std::max<size_t>(2 * inflated_.size(), size_t{1} << 19));
    stream.next_out = ZlibBytes(inflated_.data() + stream.total_out);
    stream.avail_out = static_cast<uInt>(inflated_.size() - stream.total_out);
    const int result = inflate(&stream, Z_NO_FLUSH);
    const int64_t offset = static_cast<int64_t>(stream.total_in);
    if (result == Z_STREAM_END) break;
    if (result == Z_BUF_ERROR || (result == Z_OK && stream.avail_in == 0 && stream.avail_out != 0))
      return ErrorAt(offset, "gzip stream cut short");
    if (result != Z_OK)
      return ErrorAt(offset, absl::StrCat("broken gzip stream: ",
                                          stream.msg == nullptr ? "unknown" : stream.msg));
    if (static_cast<int64_t>(stream.total_out) >= kMaxFileBytes)
      return ErrorAt(offset, "gzip stream unpacks to more than any sample");
  }
  if (stream.avail_in != 0)
    return ErrorAt(static_cast<int64_t>(stream.total_in),
                   "bytes follow the end of the gzip stream");
  return absl::string_view(inflated_.data(), stream.total_out);
}

absl::StatusOr<absl::string_view> RecordFile::Read(const std::string& path) {
  stored_size_ = 0;
  ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegularFile(path));
  const absl::Status loaded = Load(fd);
  if (!loaded.ok()) return InFile(loaded, path);
  if (compression_ == Compression::kNone) return absl::string_view(stored_.data(), stored_size_);
  absl::StatusOr<absl::string_view> content = Inflate();
  if (!content.ok()) return InFile(content.status(), path);
  return content;
}

absl::StatusOr<absl::string_view> RecordFile::ReadOnly(const std::string& path) {
  ASSIGN_OR_RETURN(const absl::string_view content, Read(path));
  RecordReader reader(content);
  const absl::StatusOr<std::optional<absl::string_view>> first = reader.Next();
  if (!first.ok()) return InFile(first.status(), path);
  if (!first->has_value()) return InFile(ErrorAt(0, "empty: expected one record"), path);
  const int64_t end = static_cast<int64_t>((*first)->size()) + kFrameBytes;
  if (end != static_cast<int64_t>(content.size()))
    return InFile(ErrorAt(end, "bytes follow the only record"), path);
  return **first;
}

}  // namespace assay::dataset
