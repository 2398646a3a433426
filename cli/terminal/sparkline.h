// Small drawings of numbers in a line of text.

#ifndef CLI_TERMINAL_SPARKLINE_H_
#define CLI_TERMINAL_SPARKLINE_H_

#include <optional>
#include <span>
#include <string>

namespace assay::cli {

// A column for each value, from 0 to the largest of them; a blank where there is none. Without
// UTF-8 of ASCII's characters.
std::string Sparkline(std::span<const std::optional<double>> values, bool is_utf8);

// `share` of a bar of `width` columns; what is more than all is drawn as all.
std::string Bar(double share, int width, bool is_utf8);

}  // namespace assay::cli

#endif  // CLI_TERMINAL_SPARKLINE_H_
