// What surrounds one invocation of `assay`: variables, streams, terminal, clock. Passed in, so that
// tests run commands in-process and see exactly what a user would.

#ifndef CLI_TERMINAL_ENVIRONMENT_H_
#define CLI_TERMINAL_ENVIRONMENT_H_

#include <istream>
#include <map>
#include <ostream>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "cli/terminal/interrupt.h"
#include "common/clock.h"

namespace assay::cli {

// Does not own what it points to.
struct Environment {
  std::map<std::string, std::string> variables;
  std::string working_directory;
  std::string program_directory;  // where assayd and the other programs lie
  std::string system_config_path = "/etc/assay/config.toml";
  std::string system_socket_path = "/run/assay/assayd.sock";
  std::istream* in = nullptr;
  // Inside of a command SafeStreams: whatever is written here is harmless to a terminal.
  std::ostream* out = nullptr;
  std::ostream* err = nullptr;
  // Inside of a command the same without that care: for bytes that must arrive as they are, and for
  // moving the cursor. tests/tidy knows who may.
  std::ostream* raw_out = nullptr;
  std::ostream* raw_err = nullptr;
  std::string style_key;  // of the SafeStreams
  bool is_out_tty = false;
  bool is_err_tty = false;
  int width = 80;  // columns of the terminal
  absl::TimeZone time_zone = absl::UTCTimeZone();
  const Clock* clock = nullptr;
  Interrupt* interrupt = nullptr;

  // Where bytes go that a program wants as they are: a log, a filter's results. A person at a
  // terminal gets them through `out`.
  std::ostream* exact_out() const { return is_out_tty ? out : raw_out; }

  // The variable's value, or "" if it is unset.
  std::string Variable(absl::string_view name) const;

  // True if text may hold more than ASCII (the locale's character set is UTF-8).
  bool IsUtf8() const;

  // $XDG_CONFIG_HOME/assay or ~/.config/assay.
  std::string UserConfigDirectory() const;

  // $XDG_CACHE_HOME/assay or ~/.cache/assay; empty if there is no home either.
  std::string UserCacheDirectory() const;

  // $XDG_RUNTIME_DIR/assay, or /tmp/assay-<uid> where there is no such directory.
  std::string RuntimeDirectory() const;

  // `path` against the working directory; "~/" is the home directory.
  std::string AbsolutePath(absl::string_view path) const;
};

// The process's own surroundings.
Environment ProcessEnvironment(const Clock* clock, Interrupt* interrupt);

}  // namespace assay::cli

#endif  // CLI_TERMINAL_ENVIRONMENT_H_
