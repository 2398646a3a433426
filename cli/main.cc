// The program `assay`: see cli/commands.cc for what it can do.

#include <string>
#include <vector>

#include "cli/app.h"
#include "cli/terminal/environment.h"
#include "cli/terminal/interrupt.h"
#include "common/clock.h"
#include "common/log.h"

int main(int argc, char** argv) {
  assay::SetMinLogSeverity(assay::LogSeverity::ERROR);
  const assay::RealClock clock;
  assay::cli::Interrupt interrupt;
  assay::cli::Environment environment = assay::cli::ProcessEnvironment(&clock, &interrupt);
  const std::vector<std::string> words(argv + 1, argv + argc);
  const assay::cli::ExitStatus status = assay::cli::RunCli(words, &environment);
  environment.out->flush();
  return static_cast<int>(status);
}
