// A JSON document in other shapes: as YAML, and as what a jq program makes of it.

#ifndef CLI_TERMINAL_DOCUMENT_H_
#define CLI_TERMINAL_DOCUMENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace assay::cli {

// Block style; strings that YAML would read as something else are quoted.
std::string ToYaml(const nlohmann::ordered_json& document);

// The results of the jq program, one a line: strings as they are, all else as JSON, as `jq -r`
// prints them. Numbers are doubles in there: whole ones above 2^53 are rounded. INVALID_ARGUMENT
// with jq's own message if the program is wrong or fails on this document.
absl::StatusOr<std::string> FilterWithJq(const std::string& program,
                                         const nlohmann::ordered_json& document);

}  // namespace assay::cli

#endif  // CLI_TERMINAL_DOCUMENT_H_
