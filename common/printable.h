// Text of others on our terminals and in our log: what a terminal would obey, or a reader not see,
// is shown instead of done.

#ifndef COMMON_PRINTABLE_H_
#define COMMON_PRINTABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace assay {

// A code point at the beginning of a text: how long it is, and which.
struct CodePoint {
  size_t size = 0;     // bytes; 0: the text is cut off in the middle of what may be a code point
  int32_t value = -1;  // -1: no UTF-8; then `size` is 1
};

// The first code point of `text`, which is not empty. RFC 3629: no surrogates, nothing overlong.
CodePoint DecodeUtf8(absl::string_view text);

// The first `code_points_max` code points of `text`, and "…" if there are more.
std::string Shortened(absl::string_view text, size_t code_points_max);

// True for what is never shown as it is: control characters (C0, DEL, C1, and so ESC and the 8-bit
// CSI), those that turn the direction of text or separate lines, and invisible tags.
bool IsUnprintable(int32_t code_point);

// `text` with every unprintable code point as \x1b or \u202e, a line end as \n, and every byte that
// is no UTF-8 as \xff. One line; UTF-8. Idempotent: backslashes stay as they are.
std::string Printable(absl::string_view text);

// As Printable for one code point, or for a byte that is no UTF-8.
std::string EscapeCodePoint(int32_t code_point);
std::string EscapeByte(char byte);

}  // namespace assay

#endif  // COMMON_PRINTABLE_H_
