#include "worker/comm/rendezvous_frame.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

#include "common/log.h"
#include "worker/comm/keys.h"

namespace assay::comm {
namespace {

constexpr size_t kLengthBytes = 4;
constexpr size_t kHeaderBytes = 1 + 4 + 4 + 2;  // type, id, rank, length of the key

void AppendBigEndian(uint32_t number, int byte_count, std::string* out) {
  for (int i = byte_count - 1; i >= 0; --i) {
    out->push_back(static_cast<char>((number >> (8 * i)) & 0xFF));
  }
}

uint32_t ReadBigEndian(absl::string_view bytes) {
  uint32_t number = 0;
  for (const char byte : bytes)
    number = number << 8 | static_cast<uint8_t>(byte);
  return number;
}

}  // namespace

std::string FrameMarks::Next(absl::string_view body) {
  std::string text;
  text.reserve(sizeof(count_) + body.size());
  AppendBigEndian(static_cast<uint32_t>(count_ >> 32), 4, &text);
  AppendBigEndian(static_cast<uint32_t>(count_), 4, &text);
  absl::StrAppend(&text, body);
  ++count_;
  return Proof(key_, text);
}

std::string EncodeFrame(const Frame& frame, FrameMarks* marks) {
  CHECK(frame.key.size() <= kKeyBytesMax) << "key_bytes=" << frame.key.size();
  CHECK(frame.value.size() <= kValueBytesMax) << "value_bytes=" << frame.value.size();
  const size_t mark_bytes = marks == nullptr ? 0 : kProofBytes;
  const size_t length = kHeaderBytes + frame.key.size() + frame.value.size() + mark_bytes;
  std::string bytes;
  bytes.reserve(kLengthBytes + length);
  AppendBigEndian(static_cast<uint32_t>(length), 4, &bytes);
  AppendBigEndian(static_cast<uint32_t>(frame.type), 1, &bytes);
  AppendBigEndian(frame.id, 4, &bytes);
  AppendBigEndian(frame.rank, 4, &bytes);
  AppendBigEndian(static_cast<uint32_t>(frame.key.size()), 2, &bytes);
  bytes += frame.key;
  bytes += frame.value;
  if (marks != nullptr) bytes += marks->Next(absl::string_view(bytes).substr(kLengthBytes));
  return bytes;
}

absl::StatusOr<std::optional<Frame>> FrameReader::Next() {
  if (buffer_.size() < kLengthBytes) return std::nullopt;
  const absl::string_view bytes = buffer_;
  const size_t length = ReadBigEndian(bytes.substr(0, kLengthBytes));
  const size_t length_min = kHeaderBytes + (marks_.has_value() ? kProofBytes : 0);
  if (length < length_min || length > frame_bytes_max_) {
    return absl::DataLossError(
        absl::StrFormat("a rendezvous frame claims %d bytes; %d to %d are allowed: the other side "
                        "does not speak this protocol",
                        length, length_min, frame_bytes_max_));
  }
  if (bytes.size() < kLengthBytes + length) return std::nullopt;
  absl::string_view body = bytes.substr(kLengthBytes, length);
  if (marks_.has_value()) {
    const absl::string_view mark = body.substr(length - kProofBytes);
    body.remove_suffix(kProofBytes);
    if (!SameBytes(mark, marks_->Next(body))) {
      return absl::UnauthenticatedError(
          "a rendezvous frame is not from the rank at the other end: somebody changes or adds to "
          "what ranks send each other");
    }
  }
  const size_t key_length = ReadBigEndian(body.substr(9, 2));
  if (kHeaderBytes + key_length > body.size() || key_length > kKeyBytesMax) {
    return absl::DataLossError(
        absl::StrFormat("a rendezvous frame claims a key of %d bytes", key_length));
  }
  Frame frame;
  frame.type = static_cast<FrameType>(static_cast<uint8_t>(body[0]));
  frame.id = ReadBigEndian(body.substr(1, 4));
  frame.rank = ReadBigEndian(body.substr(5, 4));
  frame.key = std::string(body.substr(kHeaderBytes, key_length));
  frame.value = std::string(body.substr(kHeaderBytes + key_length));
  buffer_.erase(0, kLengthBytes + length);
  return frame;
}

}  // namespace assay::comm
