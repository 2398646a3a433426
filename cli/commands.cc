// The one table of commands: every noun's rows, in the order in which help shows them.

#include <algorithm>

#include "cli/admin/audit.h"
#include "cli/admin/backup.h"
#include "cli/admin/debug_bundle.h"
#include "cli/admin/prune.h"
#include "cli/admin/token.h"
#include "cli/admin/verify.h"
#include "cli/allocation/allocation.h"
#include "cli/analyze/analyze.h"
#include "cli/bench/bench.h"
#include "cli/command/command.h"
#include "cli/command/completion.h"
#include "cli/command/config_command.h"
#include "cli/command/help.h"
#include "cli/command/version.h"
#include "cli/coordinator/dev.h"
#include "cli/coordinator/doctor.h"
#include "cli/coordinator/init.h"
#include "cli/dataset/dataset.h"
#include "cli/entry/borrow.h"
#include "cli/entry/compare.h"
#include "cli/entry/entry.h"
#include "cli/entry/entry_file.h"
#include "cli/entry/export.h"
#include "cli/entry/follow.h"
#include "cli/entry/import.h"
#include "cli/entry/prune.h"
#include "cli/entry/publish.h"
#include "cli/entry/query.h"
#include "cli/entry/score.h"
#include "cli/entry/set.h"
#include "cli/entry/submission_keys.h"
#include "cli/entry/submit.h"
#include "cli/history/history.h"
#include "cli/node/node.h"
#include "cli/package/package.h"
#include "cli/rules/hyperparameters.h"
#include "cli/rules/round_topic.h"
#include "cli/rules/rule_sets.h"
#include "cli/rules/rules_check.h"
#include "cli/rules/rules_pack.h"
#include "cli/run/run.h"
#include "cli/top/top.h"
#include "cli/web/open.h"

namespace assay::cli {

std::vector<HelpTopic> FileTopics() {
  return {{.name = "round",
           .summary = "the round file of a facility",
           .text = RoundTopic(),
           .is_file = true},
          {.name = "submission",
           .summary = "the file that 'assay submit' reads",
           .text = SubmissionTopic(),
           .is_file = true}};
}

const std::vector<Command>& CommandTable() {
  static const auto* const kTable = [] {
    auto* table = new std::vector<Command>;
    for (std::vector<Command> (*commands)() :
         {QuickstartCommands, DevCommands,        SubmitCommands,     LogsCommands,
          WaitCommands,       TopCommands,        ScoreCommands,      PruneCommands,
          CompareCommands,    AnalyzeCommands,    BenchCommands,      ImportCommands,
          EntryCommands,      EntryFileCommands,  PublishCommands,    ExportCommands,
          BorrowCommands,     SetCommands,        RunCommands,        NodeCommands,
          AllocationCommands, DatasetCommands,    RulesCommands,      RulesCheckCommands,
          RulesPackCommands,  TuningCommands,     PackageCommands,    WebCommands,
          InitCommands,       TokenCommands,      AuditCommands,      VerifyCommands,
          BackupCommands,     StorePruneCommands, QueryCommands,      HistoryCommands,
          DoctorCommands,     ConfigCommands,     CompletionCommands, HelpCommands,
          VersionCommands,    DebugBundleCommands}) {
      for (Command& command : commands())
        table->push_back(std::move(command));
    }
    return table;
  }();
  return *kTable;
}

const Command* FindCommand(absl::string_view path) {
  const auto found = std::find_if(CommandTable().begin(), CommandTable().end(),
                                  [&](const Command& command) { return command.path == path; });
  return found == CommandTable().end() ? nullptr : &*found;
}

std::string NounSummary(absl::string_view noun) {
  static const auto* const kSummaries = new std::map<std::string, std::string>{
      {"entry", "submissions of one benchmark on one system"},
      {"set", "the runs of an entry as one thing"},
      {"run", "single trainings"},
      {"node", "workers that execute runs"},
      {"allocation", "leases of nodes"},
      {"dataset", "data that entries train on"},
      {"rules", "rounds and what they demand"},
      {"package", "what an organisation hands in"},
      {"analyze", "where the time went and what it bought, as in the MLPerf HPC paper"},
      {"bench", "what this host can do"},
      {"history", "series of sets, changes of their level, trends over rounds"},
      {"history alias", "names of organisations and systems that mean the same"},
      {"admin", "operating a coordinator"},
      {"admin token", "access tokens"},
      {"web", "the site in your browser"},
      {"config", "settings of this program"}};
  const auto found = kSummaries->find(std::string(noun));
  return found == kSummaries->end() ? "" : found->second;
}

const std::vector<Option>& GlobalOptions() {
  using Kind = Option::Kind;
  static const auto* const kOptions = new std::vector<Option>{
      {.name = "output",
       .letter = 'o',
       .kind = Kind::kText,
       .value = "FORMAT",
       .help = "table, wide, plain, name, json, ndjson, yaml, csv or tpl=TEMPLATE",
       .completes = Completes::kFormat},
      {.name = "json",
       .kind = Kind::kOptionalText,
       .value = "FIELDS",
       .help = "JSON, of these fields only; --json=? lists them"},
      {.name = "jq",
       .kind = Kind::kText,
       .value = "PROGRAM",
       .help = "filter the JSON with a jq program; strings come out bare"},
      {.name = "no-header", .letter = 'H', .help = "no header line"},
      {.name = "color",
       .kind = Kind::kText,
       .value = "WHEN",
       .help = "auto, always or never",
       .completes = Completes::kColor},
      {.name = "quiet", .letter = 'q', .help = "data and errors only"},
      {.name = "verbose", .letter = 'v', .help = "also say how long it took"},
      {.name = "context",
       .kind = Kind::kText,
       .value = "NAME",
       .help = "a coordinator that your configuration names"},
      {.name = "server", .kind = Kind::kText, .value = "HOST:PORT", .help = "the coordinator"},
      {.name = "socket",
       .kind = Kind::kText,
       .value = "PATH",
       .help = "Unix socket of a coordinator on this host",
       .completes = Completes::kFile},
      {.name = "ca",
       .kind = Kind::kText,
       .value = "FILE",
       .help = "the coordinator's CA certificate",
       .completes = Completes::kFile},
      {.name = "token-file",
       .kind = Kind::kText,
       .value = "FILE",
       .help = "file with the access token; -: the standard input",
       .completes = Completes::kFile},
  };
  return *kOptions;
}

}  // namespace assay::cli
