// Log files by path: which they are, and judging many of them at once in constant memory.

#ifndef CLI_RULES_LOG_FILES_H_
#define CLI_RULES_LOG_FILES_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "cli/terminal/environment.h"
#include "common/rules/check.h"
#include "common/rules/ruleset.h"

namespace assay::cli {

struct LogFile {
  std::string shown;  // as the user wrote it, or below the folder that the user wrote
  std::string path;   // on disk
  bool is_named =
      false;  // by the user: may be a pipe, for which we wait; none found in a folder may
};

// Every file named, and every result_*.txt at any depth below every folder named; "-" is the
// standard input. Sorted by the path shown, each once. Links to folders are not followed.
// NOT_FOUND if there is none; a file that does not exist is found, and cannot be read later.
absl::StatusOr<std::vector<LogFile>> FindLogFiles(const Environment& environment,
                                                  const std::vector<std::string>& paths);

struct JudgedLog {
  std::string sha256;  // of the bytes; empty if they could not be read
  // If they could not: fails with the finding R-LOG-005 of class "unreadable".
  rules::CheckResult result;

  bool is_readable() const { return !sha256.empty(); }
};

// Reads a file piece by piece and judges it. One of more than kMllogFileBytesMax bytes is not
// judged.
JudgedLog JudgeLogFile(const LogFile& file, const rules::RuleSet& rules,
                       rules::CheckOptions options);

// Judges all files, on as many threads as there are processors. `on_judged` is called on the
// caller's thread, in the order of `files`, each as soon as it and all before it are judged.
void JudgeLogFiles(const std::vector<LogFile>& files, const rules::RuleSet& rules,
                   rules::CheckOptions options,
                   absl::FunctionRef<void(const LogFile&, const JudgedLog&)> on_judged);

}  // namespace assay::cli

#endif  // CLI_RULES_LOG_FILES_H_
