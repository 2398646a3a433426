#include "cli/terminal/plot.h"

#include <cstdlib>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/process.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr absl::Duration kDrawTimeout = absl::Minutes(1);
constexpr int kNoSuchProgram = 127;  // of env(1)
constexpr int64_t kImageBytesMax = int64_t{256} << 20;
constexpr size_t kMessageBytesMax = 2000;

struct Terminal {
  const char* suffix;
  const char* name;
  const char* unit;  // after each number of the size
  double per_unit;   // pixels
};
// A PDF is measured in inches; 100 pixels make one.
constexpr Terminal kTerminals[] = {
    {".svg", "svg", "", 1}, {".png", "pngcairo", "", 1}, {".pdf", "pdfcairo", "in", 100}};

const Terminal* TerminalFor(absl::string_view path) {
  const std::string lower = absl::AsciiStrToLower(path);
  for (const Terminal& terminal : kTerminals)
    if (absl::EndsWith(lower, terminal.suffix)) return &terminal;
  return nullptr;
}

absl::StatusOr<std::string> MakeTemporaryDirectory(const Environment& environment) {
  const std::string base = environment.Variable("TMPDIR");
  std::string path = JoinPath(base.empty() ? "/tmp" : base, "assay-plot-XXXXXX");
  if (mkdtemp(path.data()) == nullptr)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", path));
  return path;
}

absl::Status RunGnuplot(const std::string& script, const std::string& log) {
  SpawnOptions options;
  // -d: not the user's own settings.
  options.argv = {"/usr/bin/env", "gnuplot", "-d", script};
  options.output_path = log;
  ASSIGN_OR_RETURN(const ProcessId gnuplot, Spawn(options));
  absl::StatusOr<int> code = WaitForExit(gnuplot, kDrawTimeout);
  if (!code.ok()) {
    StopGroup(gnuplot, absl::Seconds(1)).IgnoreError();
    return code.status();
  }
  if (*code == kNoSuchProgram)
    return absl::FailedPreconditionError(
        "gnuplot is not installed: 'apt-get install gnuplot-nox', or take the numbers with -o csv");
  if (*code == 0) return absl::OkStatus();
  const std::string said = ReadFile(log).value_or("");
  return absl::InternalError(
      absl::StrCat("gnuplot ended with ", *code, ": ", said.substr(0, kMessageBytesMax)));
}

}  // namespace

std::string PlotText(absl::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || c == '`') {
      quoted += ' ';
    } else {
      quoted += c;
      if (c == '\'') quoted += c;
    }
  }
  return quoted + "'";
}

absl::Status Draw(const Environment& environment, const Figure& figure, const std::string& path) {
  const Terminal* terminal = TerminalFor(path);
  if (terminal == nullptr)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": figures are .svg, .png or .pdf files; name one of these"));
  ASSIGN_OR_RETURN(const std::string directory, MakeTemporaryDirectory(environment));
  const absl::Cleanup remove = [&] { RemoveTree(directory).IgnoreError(); };
  const std::string drawn = JoinPath(directory, "figure");
  const std::string script = JoinPath(directory, "figure.gp");
  const std::string text =
      absl::StrCat("set terminal ", terminal->name, " size ", figure.width / terminal->per_unit,
                   terminal->unit, ",", figure.height / terminal->per_unit, terminal->unit,
                   " font 'DejaVu Sans,11' noenhanced background '#ffffff'\nset output ",
                   PlotText(drawn), "\n", figure.commands, "\nunset output\n");
  RETURN_IF_ERROR(WriteFileAtomic(script, text));
  RETURN_IF_ERROR(RunGnuplot(script, JoinPath(directory, "log")));
  ASSIGN_OR_RETURN(const std::string image, ReadFile(drawn, kImageBytesMax));
  if (image.empty()) return absl::InternalError("gnuplot drew nothing");
  return Annotate(WriteFileAtomic(environment.AbsolutePath(path), image), path);
}

}  // namespace assay::cli
