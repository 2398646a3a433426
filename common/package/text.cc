#include "common/package/text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/json_reader.h"

namespace assay::package {
namespace {

bool IsHarmless(uint32_t code_point) {
  if (code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0)) return false;
  // Line and paragraph separators; marks, embeddings and isolates of writing direction.
  return code_point != 0x061C && !(code_point >= 0x200B && code_point <= 0x200F) &&
         !(code_point >= 0x2028 && code_point <= 0x202E) &&
         !(code_point >= 0x2060 && code_point <= 0x206F) && code_point != 0xFEFF;
}

bool IsPythonSpace(char c) {
  return absl::ascii_isspace(static_cast<unsigned char>(c)) || (c >= 0x1C && c <= 0x1F);
}

absl::string_view StripPythonSpace(absl::string_view text) {
  while (!text.empty() && IsPythonSpace(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && IsPythonSpace(text.back()))
    text.remove_suffix(1);
  return text;
}

// Digits with single underscores between them, without the underscores.
std::optional<std::string> Digits(absl::string_view text) {
  std::string digits;
  char before = '_';
  for (const char c : text) {
    const bool is_digit = absl::ascii_isdigit(static_cast<unsigned char>(c));
    if (!is_digit && (c != '_' || before == '_')) return std::nullopt;
    if (is_digit) digits += c;
    before = c;
  }
  if (before == '_' || digits.size() > static_cast<size_t>(kJsonIntegerDigitsMax))
    return std::nullopt;
  return digits;
}

}  // namespace

int ReadCodePoint(absl::string_view text, size_t at, uint32_t* code_point) {
  const auto byte = [&](size_t i) -> uint32_t { return static_cast<unsigned char>(text[i]); };
  const uint32_t first = byte(at);
  const int length = first < 0x80   ? 1
                     : first < 0xC2 ? 0
                     : first < 0xE0 ? 2
                     : first < 0xF0 ? 3
                     : first < 0xF5 ? 4
                                    : 0;
  if (length == 0 || at + static_cast<size_t>(length) > text.size()) return 0;
  constexpr uint32_t kLeadMask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  *code_point = first & kLeadMask[length];
  for (size_t i = 1; i < static_cast<size_t>(length); ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
    *code_point = *code_point << 6 | (byte(at + i) & 0x3F);
  }
  constexpr uint32_t kShortest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = *code_point >= 0xD800 && *code_point < 0xE000;
  if (*code_point < kShortest[length] || *code_point > 0x10FFFF || is_surrogate) return 0;
  return length;
}

std::string Printable(absl::string_view text, size_t bytes_max) {
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    if (shown.size() >= bytes_max) return absl::StrCat(shown, "...");
    uint32_t code_point = 0;
    const int length = ReadCodePoint(text, at, &code_point);
    const size_t bytes = length == 0 ? 1 : static_cast<size_t>(length);
    const absl::string_view piece = text.substr(at, bytes);
    if (length > 0 && IsHarmless(code_point)) {
      absl::StrAppend(&shown, piece);
    } else {
      for (const char c : piece)
        absl::StrAppendFormat(&shown, "\\x%02x", static_cast<unsigned char>(c));
    }
    at += bytes;
  }
  return shown;
}

std::optional<std::string> PythonInt(absl::string_view text) {
  text = StripPythonSpace(text);
  const bool is_negative = !text.empty() && text.front() == '-';
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  const std::optional<std::string> digits = Digits(text);
  if (!digits.has_value()) return std::nullopt;
  const size_t first = digits->find_first_not_of('0');
  if (first == std::string::npos) return "0";
  return absl::StrCat(is_negative ? "-" : "", digits->substr(first));
}

}  // namespace assay::package
