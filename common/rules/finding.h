// A finding: one violated rule, with all that a person needs to see why and what to do.

#ifndef COMMON_RULES_FINDING_H_
#define COMMON_RULES_FINDING_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace assay::rules {

enum class Severity { kError, kWarning };

struct Finding {
  std::string rule_id;
  Severity severity = Severity::kError;
  std::string error_class;  // "missing:KEY", "check_failed:KEY", ...: what equality is judged by
  int64_t line = 0;         // of the file, from 1; 0 where it is about the whole file
  std::string key;          // empty where it is about no key
  std::string expected;
  std::string found;
  std::string section;  // of the rules document
  std::string remedy;

  bool operator==(const Finding&) const = default;
};

// "path:line: error R-HP-004: opt_name: expected ..., found ... [section] fix: ...". Without line
// where it is 0.
std::string Format(absl::string_view path, const Finding& finding);

// "error" or "warning".
absl::string_view SeverityName(Severity severity);

}  // namespace assay::rules

#endif  // COMMON_RULES_FINDING_H_
