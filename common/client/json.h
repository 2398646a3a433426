// The JSON in which resources are shown: objects keep the order of their members. Pure functions.

#ifndef COMMON_CLIENT_JSON_H_
#define COMMON_CLIENT_JSON_H_

#include <string>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace assay::client {

using Json = nlohmann::ordered_json;

// JSON text with every unprintable character spelled \u202e; a valid text stays one, of equal
// value.
std::string EscapeInJson(absl::string_view json);

// `value` as JSON text that is harmless wherever it is shown; what is no UTF-8 is replaced. In
// lines, each level indented by `indent` blanks, or with -1 all in one line.
std::string DumpSafely(const Json& value, int indent);

// The value of a member as plain text: a string as it is, null as nothing, the elements of an array
// with commas between them, all else as JSON. RFC 4180 is the caller's matter.
std::string RawText(const Json& value);

}  // namespace assay::client

#endif  // COMMON_CLIENT_JSON_H_
