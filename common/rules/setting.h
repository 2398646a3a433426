// One hyperparameter that a trainer of ours reads: what kind of value it takes, and which.

#ifndef COMMON_RULES_SETTING_H_
#define COMMON_RULES_SETTING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/json_value.h"

namespace assay::rules {

// What a number may be.
struct Bounds {
  std::optional<double> min;    // and that itself
  std::optional<double> above;  // and not that itself
  std::optional<double> max;
  std::optional<double> below;
};

struct Setting {
  enum class Kind {
    kInteger,
    kNumber,  // finite
    kText,
    kNumbers,  // a list of finite numbers; a single number is a list of one
  };

  std::string key;  // its name in the log
  Kind kind = Kind::kNumber;
  Bounds bounds;                     // of each number
  int64_t multiple_of = 1;           // of an integer
  std::vector<std::string> choices;  // of a text; nothing: any
  bool ignores_case = false;         // of choices
  std::vector<int64_t> counts;       // how many numbers there may be; nothing: any
  // The one value that MLPerf's closed division has, for settings that its logs do not show.
  std::optional<int64_t> closed;

  // Whether the trainer can read `value` at all, and then whether it is one that it takes.
  bool IsOfKind(const JsonValue& value) const;
  bool Takes(const JsonValue& value) const;

  // "a whole number from 32 to 512, a multiple of 32"
  std::string Expected() const;
};

// A setting of a file: {"kind": "integer", "min": 32, "multiple_of": 32}. What does not fit ends
// the program, with `file`.
Setting ReadSetting(absl::string_view file, const std::string& key, const JsonValue& description);

// The numbers of a value of the kind kNumbers.
std::vector<double> NumbersOf(const JsonValue& value);

}  // namespace assay::rules

#endif  // COMMON_RULES_SETTING_H_
