// Draws figures with gnuplot, which runs as a program of its own.

#ifndef CLI_TERMINAL_PLOT_H_
#define CLI_TERMINAL_PLOT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "cli/terminal/environment.h"

namespace assay::cli {

// A figure: gnuplot commands without terminal and output, and its size in pixels.
struct Figure {
  std::string commands;
  int width = 1000;
  int height = 600;
};

// `text` as a gnuplot string that means nothing but itself.
std::string PlotText(absl::string_view text);

// Draws `figure` into `path`, an .svg, .png or .pdf file, replacing it when all went well.
// INVALID_ARGUMENT for another suffix, FAILED_PRECONDITION if gnuplot is not installed, with the
// remedy, INTERNAL with its message if it refuses the figure. Blocks for up to a minute.
absl::Status Draw(const Environment& environment, const Figure& figure, const std::string& path);

}  // namespace assay::cli

#endif  // CLI_TERMINAL_PLOT_H_
