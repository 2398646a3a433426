// TOML of others: the one way in. toml++ descends once for each part of a dotted name, so that a
// file of one long name ends the process; and readers do some work for each name. A look at the
// text before it is parsed keeps both small.

#ifndef COMMON_TOML_H_
#define COMMON_TOML_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "toml++/toml.h"

namespace assay {

// Far above any submission, round or settings, the longest of which has 4 kB and 60 names.
inline constexpr int64_t kTomlBytesMax = int64_t{256} << 10;
inline constexpr int kTomlNamesMax = 4096;    // the parts of all keys and headers
inline constexpr int kTomlNamePartsMax = 16;  // a.b.c has three
inline constexpr int kTomlDepthMax = 16;      // lists and inline tables within each other

// What is wrong with a text, and where: line and column from 1.
struct TomlProblem {
  int line = 1;
  int column = 1;
  std::string message;
};

// INVALID_ARGUMENT "SOURCE:LINE:COLUMN: MESSAGE".
absl::Status ToStatus(const TomlProblem& problem, absl::string_view source);

// Which of the limits above `text` exceeds, and where it does. Need be no TOML.
std::optional<TomlProblem> FindTomlExcess(absl::string_view text);

struct ParsedToml {
  toml::table table;  // empty if there is a problem
  std::optional<TomlProblem> problem;
};

// Takes time and memory in proportion to the text, however it is made.
ParsedToml ParseToml(absl::string_view text);

}  // namespace assay

#endif  // COMMON_TOML_H_
