// `assay` from words to exit status: finds the command in the table, parses its options, runs it
// and turns what went wrong into one line and a number.

#ifndef CLI_APP_H_
#define CLI_APP_H_

#include <string>
#include <vector>

#include "cli/command/exit_status.h"
#include "cli/terminal/environment.h"

namespace assay::cli {

// Runs one command line; `words` leaves out the program's name. Writes to the environment's
// streams only.
ExitStatus RunCli(const std::vector<std::string>& words, Environment* environment);

}  // namespace assay::cli

#endif  // CLI_APP_H_
