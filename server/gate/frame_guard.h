// Keeps from gRPC what it does not survive, also from callers who are known.
//
// gRPC 1.51 spends time quadratic in the length of one header block that is spread over
// CONTINUATION frames (CVE-2023-33953), on threads that serve everybody; a block of ours fits in
// one frame. And it keeps a message whole before it looks at its size, and unpacks compressed ones;
// so the five bytes that gRPC puts before each message are read here, and longer ones end the
// connection at once.

#ifndef SERVER_GATE_FRAME_GUARD_H_
#define SERVER_GATE_FRAME_GUARD_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
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

  // Calls of one connection whose messages are under way, and those that ended on one side only.
  static constexpr size_t kStreamsMax = 4096;

  // `message_bytes_max`: of one message of a call.
  explicit FrameGuard(uint32_t message_bytes_max) : message_bytes_max_(message_bytes_max) {}

  // OK if the next `bytes` may be handed on; RESOURCE_EXHAUSTED or INVALID_ARGUMENT if the
  // connection must end instead.
  absl::Status Check(absl::string_view bytes);

 private:
  // How far one call's messages have come.
  struct Messages {
    std::array<uint8_t, 5> prefix{};  // whether it is compressed; its length, four bytes
    size_t prefix_bytes = 0;
    uint32_t remaining_bytes = 0;  // of the present message
  };

  absl::Status CheckFrame(const FrameHeader& frame);
  absl::Status CheckPayload(const FrameHeader& frame, absl::string_view bytes);
  absl::Status CheckMessages(Messages* messages, absl::string_view bytes) const;

  const uint32_t message_bytes_max_;
  FrameScanner scanner_;
  absl::flat_hash_map<uint32_t, Messages> streams_;
  bool is_in_block_ = false;  // a header block has begun and not ended
  uint32_t block_bytes_ = 0;
  int block_frames_ = 0;
};

}  // namespace assay::gate

#endif  // SERVER_GATE_FRAME_GUARD_H_
