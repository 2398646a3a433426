// What a command is: a row of the one table from which parsing, help, completion and man pages are
// made. A new command is a new row in its noun's file.

#ifndef CLI_COMMAND_COMMAND_H_
#define CLI_COMMAND_COMMAND_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "cli/command/exit_status.h"

namespace assay::cli {

class Context;
class Arguments;

// What the shell may offer for a positional argument or the value of an option (completes.h).
enum class Completes {
  kNothing,
  kFile,
  kDirectory,
  kTopic,
  kShell,
  kFormat,
  kColor,
  kDivision,
  kEntryState,
  kRunState,
  // What the coordinator knows.
  kEntry,
  kEntryOrDirectory,
  kSet,
  kRun,
  kNode,
  kDataset,
  kAllocation,
  kRound,
  kBenchmark,
};

struct Option {
  enum class Kind { kFlag, kText, kInteger, kDuration, kChoice, kOptionalText };

  std::string name;  // "round" for --round
  char letter = 0;   // 'f' for -f; 0: none
  Kind kind = Kind::kFlag;
  std::string value;  // how help calls the value: "ROUND"
  std::string help;
  std::vector<std::string> choices = {};  // kChoice
  std::string fallback = {};              // used when it is not given; shown in help
  bool is_required = false;
  // kInteger: what is taken. Every command may hold such a number in an int32_t; one that declares
  // more says so.
  int64_t min = 0;
  int64_t max = std::numeric_limits<int32_t>::max();
  Completes completes = Completes::kNothing;
};

struct Positional {
  std::string name;  // "ID"
  std::string help;
  bool is_required = true;
  bool is_repeated = false;
  Completes completes = Completes::kNothing;
};

struct Example {
  std::string command;
  std::string explanation;
};

struct Command {
  using Run = absl::StatusOr<ExitStatus> (*)(Context* context, const Arguments& arguments);

  std::string path;     // "entry list"
  std::string summary;  // one line, no full stop
  std::string description;
  std::vector<Positional> positionals;
  std::vector<Option> options;
  std::vector<Example> examples;
  Run run = nullptr;
};

// The values of one parsed command line, by option or positional name. Checked against the table
// already, so a wrong name here is our own bug.
class Arguments {
 public:
  void Add(const std::string& name, const std::string& value) { values_[name].push_back(value); }

  bool Has(absl::string_view name) const;
  // The last value; "" if it was not given and has no fallback.
  std::string Get(absl::string_view name) const;
  std::vector<std::string> All(absl::string_view name) const;
  // INVALID_ARGUMENT if it is no whole number; `otherwise` if it was not given.
  absl::StatusOr<int64_t> Integer(absl::string_view name, int64_t otherwise) const;
  // "90s", "5m", "2h", "1d"; a bare number is seconds. `otherwise` if it was not given.
  absl::StatusOr<absl::Duration> Duration(absl::string_view name, absl::Duration otherwise) const;

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

// "90s", "5m", "2h", "1d", "1h30m"; a bare number is seconds. INVALID_ARGUMENT otherwise.
absl::StatusOr<absl::Duration> ParseDurationText(absl::string_view text);

// Options that every command takes.
const std::vector<Option>& GlobalOptions();

// All commands, in the order in which help shows them.
const std::vector<Command>& CommandTable();

// One line about a noun ("entry") or "" if it is none.
std::string NounSummary(absl::string_view noun);

// The command at `path`, or null.
const Command* FindCommand(absl::string_view path);

}  // namespace assay::cli

#endif  // CLI_COMMAND_COMMAND_H_
