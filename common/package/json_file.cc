#include "common/package/json_file.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/json_reader.h"
#include "common/package/text.h"
#include "common/status.h"

namespace assay::package {
namespace {

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

// The line, from 1, where the grammar ends to fit.
int64_t LineOfError(const std::string& ascii) {
  JsonScanner scanner(ascii);
  scanner.SkipSpace();
  scanner.SkipValue();
  return 1 + std::count(ascii.data(), scanner.at(), '\n');
}

}  // namespace

absl::StatusOr<JsonValue> ParseJsonFile(absl::string_view bytes) {
  ASSIGN_OR_RETURN(const std::string ascii, ToAscii(bytes));
  JsonResult result = ParseJson(ascii);
  switch (result.error) {
    case JsonError::kNone:
      return std::move(result.value);
    case JsonError::kSyntax:
      return absl::InvalidArgumentError(
          absl::StrCat("no JSON: a syntax error in line ", LineOfError(ascii)));
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
