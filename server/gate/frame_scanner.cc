#include "server/gate/frame_scanner.h"

#include <algorithm>
#include <cstring>

#include "common/status.h"

namespace assay::gate {
namespace {

constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

FrameHeader Read(const std::array<uint8_t, 9>& bytes) {
  const auto number = [&](size_t at, size_t count) {
    uint32_t value = 0;
    for (size_t i = 0; i < count; ++i)
      value = value << 8 | bytes[at + i];
    return value;
  };
  // The highest bit of the stream's number is reserved.
  return {.length = number(0, 3),
          .type = bytes[3],
          .flags = bytes[4],
          .stream_id = number(5, 4) & 0x7fffffff};
}

}  // namespace

absl::Status FrameScanner::Scan(absl::string_view bytes, OnFrame on_frame) {
  return Scan(bytes, on_frame,
              [](const FrameHeader&, absl::string_view) { return absl::OkStatus(); });
}

absl::Status FrameScanner::Scan(absl::string_view bytes, OnFrame on_frame, OnPayload on_payload) {
  if (preface_bytes_ < kPreface.size()) {
    const size_t count = std::min(bytes.size(), kPreface.size() - preface_bytes_);
    if (bytes.substr(0, count) != kPreface.substr(preface_bytes_, count))
      return absl::InvalidArgumentError("not HTTP/2: no connection preface");
    preface_bytes_ += count;
    bytes.remove_prefix(count);
  }
  while (!bytes.empty()) {
    if (is_in_payload_) {
      const absl::string_view piece = bytes.substr(0, payload_bytes_);
      bytes.remove_prefix(piece.size());
      payload_bytes_ -= static_cast<uint32_t>(piece.size());
      RETURN_IF_ERROR(on_payload(frame_, piece));
      if (payload_bytes_ > 0) break;
      is_in_payload_ = false;
      RETURN_IF_ERROR(on_payload(frame_, absl::string_view()));
      continue;
    }
    const size_t count = std::min(bytes.size(), kHeaderBytes - header_bytes_);
    std::memcpy(header_.data() + header_bytes_, bytes.data(), count);
    header_bytes_ += count;
    bytes.remove_prefix(count);
    if (header_bytes_ < kHeaderBytes) break;
    frame_ = Read(header_);
    header_bytes_ = 0;
    payload_bytes_ = frame_.length;
    is_in_payload_ = frame_.length > 0;
    RETURN_IF_ERROR(on_frame(frame_));
    if (!is_in_payload_) RETURN_IF_ERROR(on_payload(frame_, absl::string_view()));
  }
  return absl::OkStatus();
}

}  // namespace assay::gate
