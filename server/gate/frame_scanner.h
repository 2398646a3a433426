// Finds the frames in what a client of HTTP/2 sends: the connection preface, then a header of nine
// bytes before each payload (RFC 9113, sections 3.4 and 4.1). Nothing is interpreted beyond that.

#ifndef SERVER_GATE_FRAME_SCANNER_H_
#define SERVER_GATE_FRAME_SCANNER_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace assay::gate {

// Types of frames that somebody here asks for (RFC 9113, section 6).
inline constexpr uint8_t kDataFrame = 0x0;
inline constexpr uint8_t kHeadersFrame = 0x1;
inline constexpr uint8_t kResetFrame = 0x3;
inline constexpr uint8_t kSettingsFrame = 0x4;
inline constexpr uint8_t kGoAwayFrame = 0x7;
inline constexpr uint8_t kContinuationFrame = 0x9;
inline constexpr uint8_t kEndStreamFlag = 0x1;
inline constexpr uint8_t kEndHeadersFlag = 0x4;
inline constexpr uint8_t kPaddedFlag = 0x8;

struct FrameHeader {
  uint32_t length = 0;  // of the payload, bytes
  uint8_t type = 0;
  uint8_t flags = 0;
  uint32_t stream_id = 0;
};

// Constant memory, whatever comes. Not thread-safe.
class FrameScanner {
 public:
  using OnFrame = absl::FunctionRef<absl::Status(const FrameHeader&)>;
  using OnPayload = absl::FunctionRef<absl::Status(const FrameHeader&, absl::string_view)>;

  // Takes the next `bytes` of the connection and tells `on_frame` of each frame whose header is
  // complete, then `on_payload` of its payload as it comes, in pieces, down to an empty one at its
  // end. INVALID_ARGUMENT if the bytes do not begin with the preface; the first error of a callback
  // ends the scan and is returned.
  absl::Status Scan(absl::string_view bytes, OnFrame on_frame, OnPayload on_payload);
  // The same for whoever does not look into frames.
  absl::Status Scan(absl::string_view bytes, OnFrame on_frame);

 private:
  static constexpr size_t kHeaderBytes = 9;

  size_t preface_bytes_ = 0;  // of it seen
  std::array<uint8_t, kHeaderBytes> header_{};
  FrameHeader frame_;           // the last complete header
  bool is_in_payload_ = false;  // its payload has not ended
  size_t header_bytes_ = 0;     // of the present frame
  uint32_t payload_bytes_ = 0;  // of the present frame that are still to come
};

}  // namespace assay::gate

#endif  // SERVER_GATE_FRAME_SCANNER_H_
