#include "server/gate/refusal.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/status.h"

namespace assay::gate {
namespace {

// Keeps the whole block in one frame of the size that every client accepts.
constexpr size_t kMessageBytesMax = 1024;

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream_id, absl::string_view payload) {
  const auto byte = [](uint32_t value) { return static_cast<char>(value & 0xff); };
  const auto size = static_cast<uint32_t>(payload.size());
  std::string frame = {byte(size >> 16),
                       byte(size >> 8),
                       byte(size),
                       byte(type),
                       byte(flags),
                       byte(stream_id >> 24),
                       byte(stream_id >> 16),
                       byte(stream_id >> 8),
                       byte(stream_id)};
  return absl::StrCat(frame, payload);
}

// An integer with a prefix of seven bits (RFC 7541, section 5.1).
std::string Length(size_t value) {
  constexpr size_t kPrefixMax = 127;
  if (value < kPrefixMax) return std::string(1, static_cast<char>(value));
  std::string text(1, static_cast<char>(kPrefixMax));
  for (value -= kPrefixMax; value >= 128; value >>= 7)
    text.push_back(static_cast<char>((value & 0x7f) | 0x80));
  text.push_back(static_cast<char>(value));
  return text;
}

// A header that no table knows and none remembers (RFC 7541, section 6.2.2).
std::string Literal(absl::string_view name, absl::string_view value) {
  return absl::StrCat(absl::string_view("\0", 1), Length(name.size()), name, Length(value.size()),
                      value);
}

// As gRPC wants it in a header: percent-encoded, where it is not printable ASCII.
std::string PercentEncoded(absl::string_view text) {
  std::string encoded;
  for (const char c : text.substr(0, kMessageBytesMax)) {
    if (c >= ' ' && c <= '~' && c != '%')
      encoded.push_back(c);
    else
      absl::StrAppendFormat(&encoded, "%%%02X", static_cast<unsigned char>(c));
  }
  return encoded;
}

}  // namespace

std::string Refusal::Greeting() {
  return Frame(kSettingsFrame, 0, 0, "");
}

absl::StatusOr<std::string> Refusal::Answer(absl::string_view bytes) {
  uint32_t call = 0;
  RETURN_IF_ERROR(scanner_.Scan(bytes, [&](const FrameHeader& frame) {
    if (frame.type == kHeadersFrame && call == 0) call = frame.stream_id;
    return absl::OkStatus();
  }));
  if (call == 0) return std::string();
  const std::string headers = absl::StrCat(
      "\x88",  // ":status: 200", number 8 of the static table
      Literal("content-type", "application/grpc"),
      Literal("grpc-status", absl::StrCat(static_cast<int>(reason_.code()))),
      Literal("grpc-message", PercentEncoded(absl::string_view(reason_.message().data(),
                                                               reason_.message().size()))));
  // Last stream taken: `call`; no error.
  std::string last(8, '\0');
  for (size_t i = 0; i < 4; ++i)
    last[i] = static_cast<char>(call >> (24 - 8 * i));
  return absl::StrCat(Frame(kHeadersFrame, kEndStreamFlag | kEndHeadersFlag, call, headers),
                      Frame(kGoAwayFrame, 0, 0, last));
}

}  // namespace assay::gate
