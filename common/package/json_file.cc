#include "common/package/json_file.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/json_reader.h"
#include "common/status.h"

namespace assay::package {
namespace {

// The length of the UTF-8 sequence at `text[at]` and its code point; 0 if there is none.
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

void AppendEscape(uint32_t code_point, std::string* out) {
  if (code_point < 0x10000) {
    absl::StrAppendFormat(out, "\\u%04x", code_point);
    return;
  }
  const uint32_t rest = code_point - 0x10000;
  absl::StrAppendFormat(out, "\\u%04x\\u%04x", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
}

// The same JSON in ASCII, which the reader of logs (latin-1) takes. An escape outside of a string
// is a syntax error, as the character would have been.
absl::StatusOr<std::string> ToAscii(absl::string_view bytes) {
  std::string ascii;
  ascii.reserve(bytes.size());
  bool is_escaped = false;  // a backslash stands before
  for (size_t at = 0; at < bytes.size();) {
    uint32_t code_point = 0;
    const int length = ReadCodePoint(bytes, at, &code_point);
    if (length == 0) return absl::InvalidArgumentError(absl::StrCat("byte ", at, " is not UTF-8"));
    if (length == 1 || is_escaped) {
      // Behind a backslash the raw byte stays, so that it stays the syntax error that it is.
      ascii += bytes[at];
    } else {
      AppendEscape(code_point, &ascii);
    }
    is_escaped = bytes[at] == '\\' && !is_escaped;
    at += static_cast<size_t>(length);
  }
  return ascii;
}

}  // namespace

absl::StatusOr<JsonValue> ParseJsonFile(absl::string_view bytes) {
  ASSIGN_OR_RETURN(const std::string ascii, ToAscii(bytes));
  JsonResult result = ParseJson(ascii);
  switch (result.error) {
    case JsonError::kNone:
      return std::move(result.value);
    case JsonError::kSyntax:
      return absl::InvalidArgumentError("no JSON: a syntax error");
    case JsonError::kIntegerTooLong:
      return absl::InvalidArgumentError(
          absl::StrCat("an integer of more than ", kJsonIntegerDigitsMax, " digits"));
    case JsonError::kTooDeep:
      return absl::InvalidArgumentError(
          absl::StrCat("brackets nested more than ", kJsonDepthMax, " deep"));
  }
  return absl::InvalidArgumentError("no JSON");
}

absl::StatusOr<double> ParseScalingFactor(absl::string_view bytes) {
  ASSIGN_OR_RETURN(const JsonValue json, ParseJsonFile(bytes));
  const JsonValue* member = json.Find("scaling_factor");
  const bool is_number =
      member != nullptr && !member->AsBool().has_value() && member->ToDouble().has_value();
  if (!is_number) return absl::InvalidArgumentError("no object with the number scaling_factor");
  const double factor = *member->ToDouble();
  if (!std::isfinite(factor) || factor < 1)
    return absl::InvalidArgumentError("scaling_factor is less than 1 or not finite");
  return factor;
}

}  // namespace assay::package
