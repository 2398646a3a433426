#include "server/web/html.h"

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

#include "common/printable.h"

namespace assay::web {
namespace {

// What stands for a character that is markup; empty for others.
absl::string_view EntityOf(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return "";
  }
}

// A path of this site, and of no other: "//host" would be one of another.
bool IsPath(absl::string_view path) {
  return (absl::StartsWith(path, "/") && !absl::StartsWith(path, "//") &&
          !absl::StartsWith(path, "/\\")) ||
         absl::StartsWith(path, "#") || absl::StartsWith(path, "?");
}

}  // namespace

Html& Html::Text(absl::string_view text) {
  while (!text.empty()) {
    CodePoint point = DecodeUtf8(text);
    if (point.size == 0) point = {.size = 1, .value = -1};
    const absl::string_view bytes = text.substr(0, point.size);
    const absl::string_view entity = point.size == 1 ? EntityOf(bytes[0]) : absl::string_view();
    if (!entity.empty()) {
      out_.append(entity.data(), entity.size());
    } else if (point.value < 0) {
      out_ += EscapeByte(bytes[0]);
    } else if (point.value != '\n' && point.value != '\t' && IsUnprintable(point.value)) {
      out_ += EscapeCodePoint(point.value);
    } else {
      out_.append(bytes.data(), bytes.size());
    }
    text.remove_prefix(point.size);
  }
  return *this;
}

Html& Html::Link(absl::string_view path, absl::string_view text) {
  if (!IsPath(path)) return Text(text);
  return Raw("<a").Attribute("href", path).Raw(">").Text(text).Raw("</a>");
}

Html& Html::Coordinate(double value) {
  std::string text = absl::StrFormat("%.2f", value);
  while (absl::EndsWith(text, "0"))
    text.pop_back();
  if (absl::EndsWith(text, ".")) text.pop_back();
  return Text(text == "-0" ? "0" : text);
}

}  // namespace assay::web
