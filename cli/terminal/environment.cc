#include "cli/terminal/environment.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <climits>
#include <iostream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "common/file.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): unistd.h hides it without GNU

namespace assay::cli {
namespace {

constexpr int kTerminalWidthMin = 40;

int TerminalWidth(const Environment& env) {
  int columns = 0;
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) columns = size.ws_col;
  if (columns == 0 && !absl::SimpleAtoi(env.Variable("COLUMNS"), &columns)) columns = 80;
  return columns < kTerminalWidthMin ? kTerminalWidthMin : columns;
}

}  // namespace

std::string Environment::Variable(absl::string_view name) const {
  const auto found = variables.find(std::string(name));
  return found == variables.end() ? "" : found->second;
}

bool Environment::IsUtf8() const {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = absl::AsciiStrToLower(Variable(name));
    if (value.empty()) continue;
    return absl::StrContains(value, "utf-8") || absl::StrContains(value, "utf8");
  }
  return false;
}

std::string Environment::UserConfigDirectory() const {
  const std::string base = Variable("XDG_CONFIG_HOME");
  if (!base.empty()) return JoinPath(base, "assay");
  return JoinPath(Variable("HOME"), ".config/assay");
}

std::string Environment::UserCacheDirectory() const {
  const std::string base = Variable("XDG_CACHE_HOME");
  if (!base.empty()) return JoinPath(base, "assay");
  const std::string home = Variable("HOME");
  return home.empty() ? "" : JoinPath(home, ".cache/assay");
}

std::string Environment::RuntimeDirectory() const {
  const std::string base = Variable("XDG_RUNTIME_DIR");
  if (!base.empty()) return JoinPath(base, "assay");
  return absl::StrCat("/tmp/assay-", getuid());
}

std::string Environment::AbsolutePath(absl::string_view path) const {
  if (absl::StartsWith(path, "/")) return std::string(path);
  if (path == "~" || absl::StartsWith(path, "~/"))
    return absl::StrCat(Variable("HOME"), path.substr(1));
  if (path.empty() || path == ".") return working_directory;
  if (absl::StartsWith(path, "./")) path.remove_prefix(2);
  return JoinPath(working_directory, path);
}

Environment ProcessEnvironment(const Clock* clock, Interrupt* interrupt) {
  Environment env;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos)
      env.variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  char directory[PATH_MAX];
  if (getcwd(directory, sizeof(directory)) != nullptr) env.working_directory = directory;
  env.program_directory = ProgramDirectory().value_or("");
  env.in = &std::cin;
  env.out = &std::cout;
  env.err = &std::cerr;
  env.is_out_tty = isatty(STDOUT_FILENO) != 0;
  env.is_err_tty = isatty(STDERR_FILENO) != 0;
  env.width = TerminalWidth(env);
  env.time_zone = absl::LocalTimeZone();
  env.clock = clock;
  env.interrupt = interrupt;
  return env;
}

}  // namespace assay::cli
