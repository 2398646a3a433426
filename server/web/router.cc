#include "server/web/router.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "common/status.h"

namespace assay::web {
namespace {

// The value of a hexadecimal digit; -1 if it is none.
int Digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = absl::ascii_tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// The parameters if `path` has the segments of `pattern`.
std::optional<Fields> Fit(absl::string_view pattern, absl::string_view path) {
  const std::vector<absl::string_view> wanted = absl::StrSplit(pattern, '/');
  const std::vector<absl::string_view> given = absl::StrSplit(path, '/');
  if (wanted.size() != given.size()) return std::nullopt;
  Fields parameters;
  for (size_t i = 0; i < wanted.size(); ++i) {
    absl::string_view name = wanted[i];
    if (absl::ConsumePrefix(&name, "{") && absl::ConsumeSuffix(&name, "}")) {
      if (given[i].empty()) return std::nullopt;
      parameters.Add(std::string(name), std::string(given[i]));
    } else if (wanted[i] != given[i]) {
      return std::nullopt;
    }
  }
  return parameters;
}

// True if no page has such a segment: a slash within one, or a step up, would be read in two ways.
bool IsForeign(absl::string_view segment) {
  return segment == "." || segment == ".." || absl::StrContains(segment, '/') ||
         absl::StrContains(segment, absl::string_view("\0", 1));
}

absl::StatusOr<std::string> DecodePath(absl::string_view path) {
  std::string decoded;
  for (const absl::string_view part : absl::StrSplit(path.substr(1), '/')) {
    const absl::StatusOr<std::string> segment = DecodeUrl(part, /*is_plus_space=*/false);
    RETURN_IF_ERROR(segment.status());
    if (IsForeign(*segment))
      return absl::InvalidArgumentError("the path has a segment that no page has");
    absl::StrAppend(&decoded, "/", *segment);
  }
  return decoded;
}

}  // namespace

absl::StatusOr<std::string> DecodeUrl(absl::string_view text, bool is_plus_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && is_plus_space) {
      out += ' ';
    } else if (text[i] == '%') {
      const int high = i + 1 < text.size() ? Digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? Digit(text[i + 2]) : -1;
      if (high < 0 || low < 0)
        return absl::InvalidArgumentError("a \"%\" in the address without two digits after it");
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

absl::StatusOr<Fields> ParseFields(absl::string_view text) {
  Fields fields;
  for (const absl::string_view part : absl::StrSplit(text, '&', absl::SkipEmpty())) {
    if (fields.pairs().size() >= kFieldsMax)
      return absl::InvalidArgumentError(absl::StrCat("more than ", kFieldsMax, " fields"));
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    ASSIGN_OR_RETURN(std::string name, DecodeUrl(pair.first, /*is_plus_space=*/true));
    ASSIGN_OR_RETURN(std::string value, DecodeUrl(pair.second, /*is_plus_space=*/true));
    fields.Add(std::move(name), std::move(value));
  }
  return fields;
}

absl::StatusOr<Request> ParseRequest(const HttpRequest& http) {
  Request request;
  request.method = http.method == "HEAD" ? "GET" : http.method;
  request.target = http.target;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(http.target, absl::MaxSplits('?', 1));
  if (!absl::StartsWith(parts.first, "/"))
    return absl::InvalidArgumentError("the path does not begin with a slash");
  ASSIGN_OR_RETURN(request.path, DecodePath(parts.first));
  ASSIGN_OR_RETURN(request.query, ParseFields(parts.second));
  for (const char* format : {"csv", "json"}) {
    absl::string_view path = request.path;
    if (!absl::ConsumeSuffix(&path, absl::StrCat(".", format))) continue;
    request.format = format;
    request.path = std::string(path);
    break;
  }
  if (request.method == "POST" && absl::StartsWithIgnoreCase(http.Header("Content-Type"),
                                                             "application/x-www-form-urlencoded")) {
    ASSIGN_OR_RETURN(request.form, ParseFields(http.body));
  }
  return request;
}

Match FindRoute(std::span<const Route> routes, absl::string_view path) {
  for (const Route& route : routes) {
    std::optional<Fields> parameters = Fit(route.pattern, path);
    if (parameters.has_value()) return {.route = &route, .parameters = *std::move(parameters)};
  }
  return {};
}

}  // namespace assay::web
