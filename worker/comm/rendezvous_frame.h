// The rendezvous protocol: frames of one shape in both directions.
//
//   length  4 bytes, big endian: how many bytes follow
//   type    1 byte
//   id      4 bytes, big endian
//   rank    4 bytes, big endian
//   key     2 bytes of length, then the key
//   value   the rest
//   mark    kProofBytes; not in frames of the handshake (handshake.h)
//
// A mark is an HMAC over the frame's number, counted from 0 for each direction, and the frame:
// whoever has not the key of that direction cannot make, change, repeat, drop or reorder a frame
// unnoticed.

#ifndef WORKER_COMM_RENDEZVOUS_FRAME_H_
#define WORKER_COMM_RENDEZVOUS_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace assay::comm {

inline constexpr size_t kKeyBytesMax = 256;  // of a key, and of a token
inline constexpr size_t kValueBytesMax = 64 * 1024;
inline constexpr size_t kFrameBytesMax = 1024 + kValueBytesMax;
inline constexpr size_t kHelloBytesMax = 1024;  // of the handshake: a stranger is not given more

enum class FrameType : uint8_t {
  kHello = 1,      // id: world size; rank; key: the rank's nonce; value: kRendezvousProtocol
  kChallenge = 2,  // key: the server's nonce; value: the server's proof
  kAnswer = 3,     // value: the rank's proof
  kWelcome = 4,    // the rank has joined
  kRefuse = 5,     // id: status code; value: why; the server disconnects
  kSet = 6,        // id: of the request; key, value
  kGet = 7,        // id: of the request; key
  kBye = 8,        // id: of the request: this rank leaves in order
  kDone = 9,       // id: of the request; value: Get's result
  kError = 10,     // id: of the request; rank: status code; value: message
  kLost = 11,      // rank: who is gone; value: how that shows
};

struct Frame {
  FrameType type = FrameType::kHello;
  uint32_t id = 0;
  uint32_t rank = 0;
  std::string key;
  std::string value;
};

// Makes the marks of one direction, one after the other. Not thread-safe.
class FrameMarks {
 public:
  explicit FrameMarks(std::string key) : key_(std::move(key)) {}
  // Of the next frame, which without its mark is `body`.
  std::string Next(absl::string_view body);

 private:
  std::string key_;
  uint64_t count_ = 0;
};

// The bytes to send. key and value must be within their limits. `marks`: null in the handshake.
std::string EncodeFrame(const Frame& frame, FrameMarks* marks);

// Cuts a stream of bytes into frames. Not thread-safe.
class FrameReader {
 public:
  explicit FrameReader(size_t frame_bytes_max) : frame_bytes_max_(frame_bytes_max) {}

  // The handshake is over: from now on frames may be long and must have their marks.
  void ExpectMarks(FrameMarks marks) {
    marks_ = std::move(marks);
    frame_bytes_max_ = kFrameBytesMax;
  }

  void Add(absl::string_view bytes) { buffer_.append(bytes.data(), bytes.size()); }

  // The next whole frame; nullopt if more bytes are needed. DATA_LOSS: longer than allowed, or not
  // a frame. UNAUTHENTICATED: not marked by the other side. The stream is of no more use then.
  absl::StatusOr<std::optional<Frame>> Next();

 private:
  size_t frame_bytes_max_;
  std::optional<FrameMarks> marks_;  // none: in the handshake
  std::string buffer_;
};

}  // namespace assay::comm

#endif  // WORKER_COMM_RENDEZVOUS_FRAME_H_
