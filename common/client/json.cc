#include "common/client/json.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "common/printable.h"

namespace assay::client {

std::string EscapeInJson(absl::string_view json) {
  std::string escaped;
  escaped.reserve(json.size());
  while (!json.empty()) {
    const CodePoint first = DecodeUtf8(json);
    const size_t size = std::max<size_t>(first.size, 1);
    // Control characters below 0x20 stand between strings only: line ends and blanks.
    if (first.value < 0x20 || !IsUnprintable(first.value)) {
      escaped.append(json.data(), size);
    } else if (first.value < 0x10000) {
      absl::StrAppendFormat(&escaped, "\\u%04x", first.value);
    } else {
      const int32_t rest = first.value - 0x10000;
      absl::StrAppendFormat(&escaped, "\\u%04x\\u%04x", 0xD800 + (rest >> 10),
                            0xDC00 + (rest & 0x3FF));
    }
    json.remove_prefix(size);
  }
  return escaped;
}

// What the library leaves as it is and no terminal should get (DEL, the 8-bit control characters,
// what turns text around) as JSON escapes: another spelling of the same strings.
std::string DumpSafely(const Json& value, int indent) {
  return EscapeInJson(value.dump(indent, ' ', false, Json::error_handler_t::replace));
}

std::string RawText(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "";
  if (value.is_array()) {
    std::vector<std::string> parts;
    for (const Json& element : value)
      parts.push_back(RawText(element));
    return absl::StrJoin(parts, ",");
  }
  return DumpSafely(value, -1);
}

}  // namespace assay::client
