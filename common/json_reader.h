// Reads JSON text in the dialect of Python's json module, from latin-1 bytes.
//
// Beyond RFC 8259 it takes NaN, Infinity and -Infinity, duplicate members (the last wins), lone
// surrogate escapes and any byte from 0x7F up inside strings. A byte is one code point. Checking a
// text and building its value are apart, because most log lines need only the check.

#ifndef COMMON_JSON_READER_H_
#define COMMON_JSON_READER_H_

#include <string>

#include "absl/strings/string_view.h"

#include "common/json_value.h"

namespace assay {

// Brackets within brackets, the outermost counted. Python's recursion limit of 1,000 frames, less
// the caller's; the reference tool dies above it.
inline constexpr int kJsonDepthMax = 985;

// Python refuses to convert longer decimal integers (sys.int_info.default_max_str_digits).
inline constexpr int kJsonIntegerDigitsMax = 4300;

enum class JsonError { kNone, kSyntax, kIntegerTooLong, kTooDeep };

// A cursor over JSON text; every step checks the grammar and moves behind what it checked.
// The text must outlive it. Not thread-safe.
class JsonScanner {
 public:
  explicit JsonScanner(absl::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  void SkipSpace();
  bool AtEnd() const { return at_ == end_; }
  bool StartsWith(char c) const { return at_ != end_ && *at_ == c; }
  // Moves behind `c` if it comes next.
  bool Take(char c);
  // Each checks one item and moves behind it; false after an error, which error() names.
  bool SkipString();
  bool SkipValue();
  // Enters and leaves a bracket that the caller walks through itself.
  bool Enter();
  void Leave() { --depth_; }

  const char* at() const { return at_; }
  JsonError error() const { return error_; }

 private:
  bool Fail(JsonError error);
  void SkipPlain();
  bool SkipEscape();
  bool SkipNumber();
  bool SkipWord();
  bool SkipList();
  bool SkipObject();

  const char* at_;
  const char* end_;
  int depth_ = 0;
  JsonError error_ = JsonError::kNone;
};

// The value of `text`, one JSON value that a JsonScanner has accepted, without space around it.
JsonValue BuildJson(absl::string_view text);

struct JsonResult {
  JsonError error = JsonError::kNone;
  JsonValue value;  // null unless error is kNone
};

// The whole of `text` as one value; space around it is fine.
JsonResult ParseJson(absl::string_view text);

}  // namespace assay

#endif  // COMMON_JSON_READER_H_
