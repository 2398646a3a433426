// Keeps from gRPC what its HTTP/2 parser does not survive, also from callers who are known.
//
// gRPC 1.51 spends time quadratic in the length of one header block that is spread over
// CONTINUATION frames (CVE-2023-33953), on threads that serve everybody. A block of ours fits in
// one frame.

#ifndef SERVER_GATE_FRAME_GUARD_H_
#define SERVER_GATE_FRAME_GUARD_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "server/gate/frame_scanner.h"

namespace assay::gate {

// Of one connection, in the direction from the client. Not thread-safe.
class FrameGuard {
 public:
  // Headers of one call, compressed: gRPC's own clients send a few hundred bytes, and refuse to
  // send more than 8 KiB unless told to.
  static constexpr uint32_t kHeaderBlockBytesMax = 16 << 10;
  // Frames of one header block. gRPC's clients need one.
  static constexpr int kHeaderBlockFramesMax = 4;

  // OK if the next `bytes` may be handed on; RESOURCE_EXHAUSTED or INVALID_ARGUMENT if the
  // connection must end instead.
  absl::Status Check(absl::string_view bytes);

 private:
  absl::Status CheckFrame(const FrameHeader& frame);

  FrameScanner scanner_;
  bool is_in_block_ = false;  // a header block has begun and not ended
  uint32_t block_bytes_ = 0;
  int block_frames_ = 0;
};

}  // namespace assay::gate

#endif  // SERVER_GATE_FRAME_GUARD_H_
