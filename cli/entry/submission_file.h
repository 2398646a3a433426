// A submission file: TOML, as docs/submitter.md describes it. What is wrong in it is reported with
// line and column, and so is what the coordinator finds wrong with its values later.

#ifndef CLI_ENTRY_SUBMISSION_FILE_H_
#define CLI_ENTRY_SUBMISSION_FILE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "assay/v1/resources.pb.h"

namespace assay::cli {

// A place in a file; both counted from 1, 0 where there is none.
struct Position {
  int line = 0;
  int column = 0;
  bool operator==(const Position&) const = default;
};

struct Diagnostic {
  enum class Severity { kError, kWarning };
  Severity severity = Severity::kError;
  Position at;
  std::string rule;     // "R-HP-004"; empty if it is about the file itself
  std::string message;  // what is wrong
  std::string remedy;   // what to do
};

struct SubmissionFile {
  std::string path;  // as the user wrote it
  std::string text;
  v1::SubmissionSpec spec;
  std::string source_folder;                  // of [workload], as written; empty: none
  std::string source;                         // the same as an archive, once it is packed
  std::map<std::string, Position> positions;  // of each key's value
  std::vector<Diagnostic> problems;           // empty: the file is sound
};

// Reads the text of a submission file. Never fails: see `problems`.
SubmissionFile ParseSubmissionFile(absl::string_view text, absl::string_view path);

// What a finding of the rules says about the file: its key is looked up in the file, under the name
// that it has there.
Diagnostic DiagnosticFor(const SubmissionFile& file, const v1::Finding& finding);

// "path:12:12: error R-HP-004: ...", the line of the file with a mark under the place, and the
// remedy.
std::string FormatDiagnostic(const SubmissionFile& file, const Diagnostic& diagnostic);

}  // namespace assay::cli

#endif  // CLI_ENTRY_SUBMISSION_FILE_H_
