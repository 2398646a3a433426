// Text that comes from somebody else's files and file names: reading it as Python does, and making
// it fit to be shown.

#ifndef COMMON_PACKAGE_TEXT_H_
#define COMMON_PACKAGE_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace assay::package {

// The length in bytes of the UTF-8 sequence at `text[at]`, and its code point; 0 if there is none.
int ReadCodePoint(absl::string_view text, size_t at, uint32_t* code_point);

// `text` on one line and harmless to a terminal: control characters, marks that change the
// direction of writing and bytes that are not UTF-8 as \xNN, cut after about `bytes_max` bytes.
std::string Printable(absl::string_view text, size_t bytes_max = 400);

// Python's int(text), for ASCII: blanks around, a sign, underscores between digits, at most 4,300
// digits. As "-" and digits without leading zeros; nullopt (ValueError) for anything else.
std::optional<std::string> PythonInt(absl::string_view text);

}  // namespace assay::package

#endif  // COMMON_PACKAGE_TEXT_H_
