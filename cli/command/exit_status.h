// How `assay` ends. One table; scripts read the numbers, so they never change their meaning.

#ifndef CLI_COMMAND_EXIT_STATUS_H_
#define CLI_COMMAND_EXIT_STATUS_H_

#include <span>

#include "absl/status/status.h"

namespace assay::cli {

enum class ExitStatus : int {
  kDone = 0,
  kFailed = 1,         // the thing asked about failed
  kUsage = 2,          // the command line or a file that it names is wrong
  kRuleViolation = 3,  // a rule of the round says no
  kNotAllowed = 4,     // not logged in, or the role may not
  kNotFound = 5,
  kUnreachable = 6,  // no coordinator answers
  kTimedOut = 7,     // --timeout has passed
  kConflict = 8,     // the state does not allow it, or has changed
  kStillRunning = 9,
  kDifferent = 10,     // a comparison found differences
  kInterrupted = 130,  // Ctrl-C; what was started goes on
};

struct ExitStatusRow {
  ExitStatus status;
  const char* meaning;
};

// Every status with its meaning, in numeric order.
std::span<const ExitStatusRow> ExitStatusTable();

// What a failed call means for the exit status.
ExitStatus ExitStatusFor(const absl::Status& status);

}  // namespace assay::cli

#endif  // CLI_COMMAND_EXIT_STATUS_H_
