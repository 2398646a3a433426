// Runs `assay` in this process, in surroundings that do not depend on the machine.

#ifndef TESTS_CLI_INVOCATION_H_
#define TESTS_CLI_INVOCATION_H_

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"

#include "cli/app.h"
#include "cli/terminal/environment.h"
#include "common/file.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temp_dir.h"

namespace assay::testing {

class Invocation {
 public:
  Invocation() {
    env.variables = {{"LANG", "C.UTF-8"}, {"HOME", home.path()}, {"TERM", "xterm"}};
    env.variables["XDG_RUNTIME_DIR"] = home.Path("run");
    env.working_directory = home.path();
    env.system_config_path = home.Path("etc/config.toml");
    env.system_socket_path = home.Path("no.sock");
    env.out = &out_stream_;
    env.err = &err_stream_;
    env.clock = &clock;
    env.interrupt = &interrupt;
  }

  // Words are split at blanks.
  cli::ExitStatus Run(const std::string& line) {
    return RunWords(absl::StrSplit(line, ' ', absl::SkipEmpty()));
  }
  cli::ExitStatus RunWords(const std::vector<std::string>& words) {
    out_stream_.str("");
    err_stream_.str("");
    const cli::ExitStatus status = cli::RunCli(words, &env);
    out = out_stream_.str();
    err = err_stream_.str();
    return status;
  }

  // A file below the working directory; its parents are made.
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = home.Path(name);
    CHECK_OK(MakeDirectories(path.substr(0, path.rfind('/'))));
    CHECK_OK(WriteFileAtomic(path, text));
    return path;
  }

  TempDir home;
  FakeClock clock;
  cli::Interrupt interrupt;
  cli::Environment env;
  std::string out;  // of the last run
  std::string err;

 private:
  std::ostringstream out_stream_;
  std::ostringstream err_stream_;
};

}  // namespace assay::testing

#endif  // TESTS_CLI_INVOCATION_H_
