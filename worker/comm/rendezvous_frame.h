// The rendezvous protocol: frames of one shape in both directions.
//
//   length  4 bytes, big endian: how many bytes follow
//   type    1 byte
//   id      4 bytes, big endian
//   rank    4 bytes, big endian
//   key     2 bytes of length, then the key
//   value   the rest

#ifndef WORKER_COMM_RENDEZVOUS_FRAME_H_
#define WORKER_COMM_RENDEZVOUS_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace assay::comm {

inline constexpr absl::string_view kRendezvousProtocol = "assay-rendezvous 1";
inline constexpr size_t kKeyBytesMax = 256;  // of a key, and of a token
inline constexpr size_t kValueBytesMax = 64 * 1024;
inline constexpr size_t kFrameBytesMax = 1024 + kValueBytesMax;
inline constexpr size_t kHelloBytesMax = 1024;  // a stranger is not given more

enum class FrameType : uint8_t {
  kHello = 1,    // id: world size; rank; key: token; value: kRendezvousProtocol
  kWelcome = 2,  // the rank has joined
  kRefuse = 3,   // id: status code; value: why; the server disconnects
  kSet = 4,      // id: of the request; key, value
  kGet = 5,      // id: of the request; key
  kBye = 6,      // id: of the request: this rank leaves in order
  kDone = 7,     // id: of the request; value: Get's result
  kError = 8,    // id: of the request; rank: status code; value: message
  kLost = 9,     // rank: who is gone; value: how that shows
};

struct Frame {
  FrameType type = FrameType::kHello;
  uint32_t id = 0;
  uint32_t rank = 0;
  std::string key;
  std::string value;
};

// The bytes to send. key and value must be within their limits.
std::string EncodeFrame(const Frame& frame);

// Cuts a stream of bytes into frames. Not thread-safe.
class FrameReader {
 public:
  explicit FrameReader(size_t frame_bytes_max) : frame_bytes_max_(frame_bytes_max) {}

  void set_frame_bytes_max(size_t bytes) { frame_bytes_max_ = bytes; }

  void Add(absl::string_view bytes) { buffer_.append(bytes.data(), bytes.size()); }

  // The next whole frame; nullopt if more bytes are needed. DATA_LOSS: longer than allowed, or not
  // a frame; the stream is of no more use.
  absl::StatusOr<std::optional<Frame>> Next();

 private:
  size_t frame_bytes_max_;
  std::string buffer_;
};

}  // namespace assay::comm

#endif  // WORKER_COMM_RENDEZVOUS_FRAME_H_
