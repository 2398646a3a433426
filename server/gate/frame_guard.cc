#include "server/gate/frame_guard.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "common/status.h"

namespace assay::gate {

absl::Status FrameGuard::Check(absl::string_view bytes) {
  return scanner_.Scan(
      bytes, [this](const FrameHeader& frame) { return CheckFrame(frame); },
      [this](const FrameHeader& frame, absl::string_view payload) {
        return CheckPayload(frame, payload);
      });
}

absl::Status FrameGuard::CheckMessages(Messages* messages, absl::string_view bytes) const {
  while (!bytes.empty()) {
    const size_t skipped = std::min<size_t>(bytes.size(), messages->remaining_bytes);
    messages->remaining_bytes -= static_cast<uint32_t>(skipped);
    bytes.remove_prefix(skipped);
    if (bytes.empty()) break;
    messages->prefix[messages->prefix_bytes++] = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    if (messages->prefix_bytes < messages->prefix.size()) continue;
    messages->prefix_bytes = 0;
    const std::array<uint8_t, 5>& prefix = messages->prefix;
    messages->remaining_bytes = uint32_t{prefix[1]} << 24 | uint32_t{prefix[2]} << 16 |
                                uint32_t{prefix[3]} << 8 | uint32_t{prefix[4]};
    if (prefix[0] != 0) return absl::InvalidArgumentError("a compressed message");
    if (messages->remaining_bytes > message_bytes_max_) {
      return absl::ResourceExhaustedError(absl::StrCat("a message of ", messages->remaining_bytes,
                                                       " bytes, at most ", message_bytes_max_));
    }
  }
  return absl::OkStatus();
}

absl::Status FrameGuard::CheckPayload(const FrameHeader& frame, absl::string_view bytes) {
  if (frame.type == kDataFrame && !bytes.empty()) {
    if (streams_.size() >= kStreamsMax && !streams_.contains(frame.stream_id))
      return absl::ResourceExhaustedError("more calls than a connection may have");
    return CheckMessages(&streams_[frame.stream_id], bytes);
  }
  if (!bytes.empty()) return absl::OkStatus();
  // The end of the frame: the client may have ended the call with it.
  const bool can_end = frame.type == kDataFrame || frame.type == kHeadersFrame;
  if (frame.type == kResetFrame || (can_end && (frame.flags & kEndStreamFlag) != 0))
    streams_.erase(frame.stream_id);
  return absl::OkStatus();
}

absl::Status FrameGuard::CheckFrame(const FrameHeader& frame) {
  // RFC 9113, section 6.10: nothing may come between the frames of a block.
  if (is_in_block_ != (frame.type == kContinuationFrame))
    return absl::InvalidArgumentError("a header block is interrupted, or goes on unbegun");
  // Nobody pads, and where messages begin would be hard to tell.
  if (frame.type == kDataFrame && (frame.flags & kPaddedFlag) != 0)
    return absl::InvalidArgumentError("a padded frame");
  if (frame.type != kHeadersFrame && frame.type != kContinuationFrame) return absl::OkStatus();
  if (frame.type == kHeadersFrame) {
    block_bytes_ = 0;
    block_frames_ = 0;
  }
  // Compared before it is added, so that nothing overflows.
  if (++block_frames_ > kHeaderBlockFramesMax ||
      frame.length > kHeaderBlockBytesMax - block_bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the headers of a call are longer than ", kHeaderBlockBytesMax,
                     " bytes or in more than ", kHeaderBlockFramesMax, " frames"));
  }
  block_bytes_ += frame.length;
  is_in_block_ = (frame.flags & kEndHeadersFlag) == 0;
  return absl::OkStatus();
}

}  // namespace assay::gate
