#include "server/gate/frame_guard.h"

#include "absl/strings/str_cat.h"

namespace assay::gate {

absl::Status FrameGuard::Check(absl::string_view bytes) {
  return scanner_.Scan(bytes, [this](const FrameHeader& frame) { return CheckFrame(frame); });
}

absl::Status FrameGuard::CheckFrame(const FrameHeader& frame) {
  // RFC 9113, section 6.10: nothing may come between the frames of a block.
  if (is_in_block_ != (frame.type == kContinuationFrame))
    return absl::InvalidArgumentError("a header block is interrupted, or goes on unbegun");
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
