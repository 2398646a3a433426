#include "worker/agent/event_spool.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/log.h"
#include "common/status.h"

namespace assay::agent {
namespace {

constexpr size_t kHeaderBytes = 32;
constexpr size_t kCheckedFrom = 8;  // the CRC covers what follows it
constexpr int64_t kPayloadBytesMax = 2 << 20;
constexpr int64_t kSpoolBytesMax = int64_t{4} << 30;  // of one run

void PutInteger(uint64_t value, int byte_count, std::string* out) {
  for (int i = 0; i < byte_count; ++i)
    out->push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t GetInteger(absl::string_view bytes, size_t at, int byte_count) {
  uint64_t value = 0;
  for (int i = byte_count - 1; i >= 0; --i)
    value = value << 8 | static_cast<unsigned char>(bytes[at + static_cast<size_t>(i)]);
  return value;
}

uint32_t Checksum(absl::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::string EncodeRecord(const v1::RunEvent& event, const SourcePosition& position) {
  std::string body;
  PutInteger(static_cast<uint64_t>(position.log_offset), 8, &body);
  PutInteger(static_cast<uint64_t>(position.log_line), 8, &body);
  PutInteger(static_cast<uint64_t>(position.progress_offset), 8, &body);
  const size_t payload_bytes = event.ByteSizeLong();
  event.AppendToString(&body);
  std::string record;
  PutInteger(payload_bytes, 4, &record);
  PutInteger(Checksum(body), 4, &record);
  return record + body;
}

struct Record {
  v1::RunEvent event;
  SourcePosition position;
  size_t bytes = 0;
};

// The record at the start of `bytes`; nullopt if it is cut short or damaged.
std::optional<Record> DecodeRecord(absl::string_view bytes) {
  if (bytes.size() < kHeaderBytes) return std::nullopt;
  const size_t payload_bytes = GetInteger(bytes, 0, 4);
  if (payload_bytes > static_cast<size_t>(kPayloadBytesMax)) return std::nullopt;
  if (bytes.size() < kHeaderBytes + payload_bytes) return std::nullopt;
  Record record;
  record.bytes = kHeaderBytes + payload_bytes;
  const absl::string_view checked = bytes.substr(kCheckedFrom, record.bytes - kCheckedFrom);
  if (Checksum(checked) != GetInteger(bytes, 4, 4)) return std::nullopt;
  record.position.log_offset = static_cast<int64_t>(GetInteger(bytes, 8, 8));
  record.position.log_line = static_cast<int64_t>(GetInteger(bytes, 16, 8));
  record.position.progress_offset = static_cast<int64_t>(GetInteger(bytes, 24, 8));
  if (!record.event.ParseFromArray(bytes.data() + kHeaderBytes, static_cast<int>(payload_bytes)))
    return std::nullopt;
  return record;
}

absl::Status WriteAt(int fd, int64_t offset, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, "cannot write");
    bytes.remove_prefix(static_cast<size_t>(n));
    offset += n;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadAt(int fd, int64_t offset, size_t byte_count) {
  std::string bytes(byte_count, '\0');
  size_t done = 0;
  while (done < byte_count) {
    const ssize_t n =
        pread(fd, bytes.data() + done, byte_count - done, offset + static_cast<int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, "cannot read");
    if (n == 0) return absl::DataLossError("ends too early");
    done += static_cast<size_t>(n);
  }
  return bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<EventSpool>> EventSpool::Open(const std::string& path,
                                                             const Visitor& visit) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  std::unique_ptr<EventSpool> spool(new EventSpool(std::move(fd), path));
  RETURN_IF_ERROR(Annotate(spool->Load(visit), path));
  return spool;
}

absl::Status EventSpool::Load(const Visitor& visit) {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path_, kSpoolBytesMax));
  MutexLock lock(&mutex_);
  size_t offset = 0;
  while (offset < content.size()) {
    const std::optional<Record> record = DecodeRecord(absl::string_view(content).substr(offset));
    if (!record.has_value() || record->event.seq() != durable_seq_ + 1) break;
    offsets_.push_back(static_cast<int64_t>(offset));
    offset += record->bytes;
    durable_seq_ = record->event.seq();
    position_ = record->position;
    if (visit) visit(record->event);
  }
  durable_bytes_ = static_cast<int64_t>(offset);
  if (offset == content.size()) return absl::OkStatus();
  LOG(WARNING) << "spool tail cut path=" << path_ << " bytes=" << content.size() - offset
               << " last_seq=" << durable_seq_;
  if (ftruncate(fd_.get(), durable_bytes_) != 0) return absl::ErrnoToStatus(errno, "cannot cut");
  if (fsync(fd_.get()) != 0) return absl::ErrnoToStatus(errno, "cannot sync");
  return absl::OkStatus();
}

void EventSpool::Append(v1::RunEvent event, const SourcePosition& position) {
  MutexLock lock(&mutex_);
  event.set_seq(static_cast<int64_t>(offsets_.size()) + 1);
  offsets_.push_back(durable_bytes_ + static_cast<int64_t>(pending_.size()));
  pending_ += EncodeRecord(event, position);
  position_ = position;
}

absl::Status EventSpool::Sync() {
  std::string pending;
  int64_t offset = 0;
  int64_t last_seq = 0;
  {
    MutexLock lock(&mutex_);
    if (pending_.empty()) return absl::OkStatus();
    pending = pending_;
    offset = durable_bytes_;
    last_seq = static_cast<int64_t>(offsets_.size());
  }
  // Always to the same place, so that a write that stopped half-way is simply repeated.
  RETURN_IF_ERROR(Annotate(WriteAt(fd_.get(), offset, pending), path_));
  if (fdatasync(fd_.get()) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot sync ", path_));
  MutexLock lock(&mutex_);
  durable_bytes_ = offset + static_cast<int64_t>(pending.size());
  durable_seq_ = last_seq;
  pending_.erase(0, pending.size());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<v1::RunEvent>> EventSpool::Read(int64_t first_seq,
                                                           const BatchLimits& limits) const {
  int64_t begin = 0;
  int64_t end = 0;
  {
    MutexLock lock(&mutex_);
    if (first_seq < 1 || first_seq > durable_seq_) return std::vector<v1::RunEvent>();
    const auto first = static_cast<size_t>(first_seq - 1);
    begin = offsets_[first];
    size_t next = first;
    do {
      ++next;
      end = next < static_cast<size_t>(durable_seq_) ? offsets_[next] : durable_bytes_;
      if (next >= static_cast<size_t>(durable_seq_)) break;
      if (static_cast<int>(next - first) >= limits.event_count_max) break;
      const int64_t after_next =
          next + 1 < static_cast<size_t>(durable_seq_) ? offsets_[next + 1] : durable_bytes_;
      if (after_next - begin > limits.bytes_max) break;
    } while (true);
  }
  absl::StatusOr<std::string> bytes = ReadAt(fd_.get(), begin, static_cast<size_t>(end - begin));
  if (!bytes.ok()) return Annotate(bytes.status(), path_);
  std::vector<v1::RunEvent> events;
  for (size_t offset = 0; offset < bytes->size();) {
    std::optional<Record> record = DecodeRecord(absl::string_view(*bytes).substr(offset));
    if (!record.has_value())
      return absl::DataLossError(absl::StrCat(path_, " is damaged after seq ", first_seq - 1));
    offset += record->bytes;
    events.push_back(std::move(record->event));
  }
  return events;
}

int64_t EventSpool::durable_seq() const {
  MutexLock lock(&mutex_);
  return durable_seq_;
}

int64_t EventSpool::last_seq() const {
  MutexLock lock(&mutex_);
  return static_cast<int64_t>(offsets_.size());
}

}  // namespace assay::agent
