// JSON files beside the logs: systems/SYSTEM.json, scaling.json.

#ifndef COMMON_PACKAGE_JSON_FILE_H_
#define COMMON_PACKAGE_JSON_FILE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/json_value.h"

namespace assay::package {

// The value of a whole file, in the dialect of Python's json module. Unlike a log, such a file is
// UTF-8. INVALID_ARGUMENT, in words, for what that module refuses: bytes that are not UTF-8, a
// byte order mark, a syntax error, an integer of more than 4,300 digits, nesting near 1,000.
absl::StatusOr<JsonValue> ParseJsonFile(absl::string_view bytes);

// scaling.json: {"scaling_factor": NUMBER}, a finite number of at least 1 (rules specification,
// section 4.5). INVALID_ARGUMENT for anything else.
absl::StatusOr<double> ParseScalingFactor(absl::string_view bytes);

}  // namespace assay::package

#endif  // COMMON_PACKAGE_JSON_FILE_H_
