#include "common/printable.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace assay {
namespace {

struct Range {
  int32_t first;
  int32_t last;
};

// Unicode 15: general categories Cc, Zl, Zp; property Bidi_Control; interlinear annotation; tags.
constexpr Range kUnprintable[] = {{0x00, 0x1F},     {0x7F, 0x9F},     {0x061C, 0x061C},
                                  {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2066, 0x2069},
                                  {0xFFF9, 0xFFFB}, {0xFEFF, 0xFEFF}, {0xE0000, 0xE007F}};

}  // namespace

CodePoint DecodeUtf8(absl::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {1, lead};
  if (lead < 0xC2 || lead > 0xF4) return {1, -1};
  const size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  int32_t value = lead & (0x7F >> size);
  for (size_t i = 1; i < size; ++i) {
    if (i == text.size()) return {0, -1};
    // The second byte also tells overlong forms, surrogates and what is beyond U+10FFFF.
    const uint8_t low = i > 1 ? 0x80 : lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = i > 1 ? 0xBF : lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (byte(i) < low || byte(i) > high) return {1, -1};
    value = value << 6 | (byte(i) & 0x3F);
  }
  return {size, value};
}

bool IsUnprintable(int32_t code_point) {
  for (const Range& range : kUnprintable)
    if (code_point >= range.first && code_point <= range.last) return true;
  return false;
}

std::string Shortened(absl::string_view text, size_t code_points_max) {
  absl::string_view rest = text;
  for (size_t i = 0; i < code_points_max && !rest.empty(); ++i)
    rest.remove_prefix(std::max<size_t>(1, DecodeUtf8(rest).size));
  if (rest.empty()) return std::string(text);
  return absl::StrCat(text.substr(0, text.size() - rest.size()), "…");
}

std::string EscapeCodePoint(int32_t code_point) {
  if (code_point == '\n') return "\\n";
  if (code_point == '\r') return "\\r";
  if (code_point == '\t') return "\\t";
  if (code_point < 0x80) return absl::StrFormat("\\x%02x", code_point);
  if (code_point < 0x10000) return absl::StrFormat("\\u%04x", code_point);
  return absl::StrFormat("\\U%08x", code_point);
}

std::string EscapeByte(char byte) {
  return absl::StrFormat("\\x%02x", static_cast<uint8_t>(byte));
}

std::string Printable(absl::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    CodePoint first = DecodeUtf8(text);
    if (first.size == 0) first = {1, -1};  // cut off: no UTF-8
    if (first.value < 0) {
      shown += EscapeByte(text[0]);
    } else if (IsUnprintable(first.value)) {
      shown += EscapeCodePoint(first.value);
    } else {
      shown.append(text.data(), first.size);
    }
    text.remove_prefix(first.size);
  }
  return shown;
}

}  // namespace assay
