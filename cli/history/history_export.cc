#include "cli/history/history_export.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

#include "cli/command/context.h"
#include "cli/command/filter_terms.h"
#include "cli/history/history_database.h"
#include "common/file.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr char kEveryKind[] = "all";

absl::StatusOr<HistoryExport> WhatOf(const Arguments& arguments) {
  HistoryExport what{.kind = ParseHistoryKind(arguments.Get("kind")), .filter = {}};
  const HistoryKind kind = what.kind.value_or(HistoryKind::kEntry);
  ASSIGN_OR_RETURN(what.filter,
                   WithFilterOptions(arguments, kind, FilterOf(arguments.All("FILTER"))));
  RETURN_IF_ERROR(ReadFilter(kind, what.filter).status());
  return what;
}

absl::Status CheckPlace(const std::string& path, bool is_forced) {
  if (is_forced || !FileExists(path)) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(path, " is there already; --force replaces it, or name another file"));
}

absl::StatusOr<TableCounts> Export(Context* context, const client::Client& client,
                                   const HistoryExport& what, const std::string& path) {
  ASSIGN_OR_RETURN(const v1::ServerInfo info, client.CallRetrying(v1::GetServerInfoRequest()));
  ASSIGN_OR_RETURN(DatabaseFile file, DatabaseFile::Create(path));
  const Interrupt* const interrupt = context->env().interrupt;
  ProgressLine line(context);
  ASSIGN_OR_RETURN(TableCounts counts,
                   WriteHistoryTables(
                       client, what,
                       [&](absl::string_view table, int64_t done, int64_t total) -> absl::Status {
                         constexpr int64_t kRowsBetween = 500;
                         if (done % kRowsBetween == 0)
                           line.Draw(absl::StrCat("reading ", table, ": ", done, " of ", total));
                         return interrupt->IsRaised()
                                    ? absl::CancelledError("interrupted; nothing is written")
                                    : absl::OkStatus();
                       },
                       &file));
  RETURN_IF_ERROR(WriteHistoryMeta(
      {{"schema", kHistoryDatabaseSchema},
       {"coordinator", client.endpoint().target},
       {"coordinator_version", info.version()},
       {"event", absl::StrCat(info.event_seq())},
       {"principal", info.principal()},
       {"role", info.role()},
       {"organization", info.organization()},
       {"exported",
        absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", context->env().clock->Wall(), absl::UTCTimeZone())},
       {"kind", what.kind.has_value() ? std::string(ToString(*what.kind)) : kEveryKind},
       {"filter", what.filter}},
      &file));
  RETURN_IF_ERROR(file.Finish());
  return counts;
}

absl::StatusOr<ExitStatus> RunHistoryExport(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const HistoryExport what, WhatOf(arguments));
  const std::string path = context->env().AbsolutePath(arguments.Get("FILE"));
  RETURN_IF_ERROR(CheckPlace(path, arguments.Has("force")));
  context->env().interrupt->Listen();
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const TableCounts counts, Export(context, *client, what, path));
  if (context->printer().IsStructured()) {
    Json tables = Json::object();
    for (const auto& [name, count] : counts)
      tables[name] = count;
    RETURN_IF_ERROR(context->printer().Show({.schema = "assay.history_export/v1",
                                             .value = {{"path", path}, {"rows", std::move(tables)}},
                                             .fields = {{"PATH", "path"}}}));
    return ExitStatus::kDone;
  }
  context->out() << "exported "
                 << absl::StrJoin(counts, ", ",
                                  [](std::string* out, const auto& table) {
                                    absl::StrAppend(out, table.second, " ", table.first);
                                  })
                 << " to " << path << "\n";
  context->Note("the table 'columns' tells what each column means, and its unit");
  return ExitStatus::kDone;
}

std::vector<std::string> KindChoices() {
  std::vector<std::string> kinds = {kEveryKind};
  for (const HistoryKind kind : kHistoryKinds)
    kinds.emplace_back(ToString(kind));
  return kinds;
}

}  // namespace

std::vector<Command> HistoryExportCommands() {
  return {
      {.path = "history export",
       .summary = "write what you may see of the history as a SQLite database",
       .description =
           "For analysts: the tables entries, runs, findings, hyperparameters and workers, with "
           "the fields that 'assay help query' lists; columns, which tells what each means and "
           "its unit; and meta, which tells whose view of which coordinator this is. A filter "
           "chooses entries, and their runs, findings and hyperparameters come with them; with "
           "--kind it chooses rows of that kind, and there is no other table. Times are text in "
           "UTC, lists are JSON, yes and no are 1 and 0. The file appears when it is whole.",
       .positionals = {{.name = "FILE", .help = "results.sqlite", .completes = Completes::kFile},
                       FilterPositional()},
       .options = {{.name = "kind",
                    .kind = Option::Kind::kChoice,
                    .value = "KIND",
                    .help = "rows of this kind alone",
                    .choices = KindChoices(),
                    .fallback = kEveryKind},
                   SinceOption(),
                   {.name = "force", .help = "replace FILE if it is there"}},
       .examples =
           {{"assay history export results.sqlite", ""},
            {"assay history export closed.sqlite round=v1.0 division=closed", ""},
            {"sqlite3 results.sqlite 'SELECT system, min(minutes) FROM entries GROUP BY system'",
             ""}},
       .run = RunHistoryExport}};
}

}  // namespace assay::cli
