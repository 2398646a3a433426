#include "cli/run/run.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

#include "cli/command/context.h"
#include "cli/command/filter_terms.h"
#include "cli/run/event_printer.h"
#include "cli/run/run_bytes.h"
#include "cli/run/run_caches.h"
#include "cli/run/run_files.h"
#include "cli/run/run_ledger.h"
#include "cli/run/run_profile.h"
#include "cli/run/run_replay.h"
#include "cli/run/run_telemetry.h"
#include "cli/run/run_touch.h"
#include "cli/terminal/resource_columns.h"
#include "common/client/energy.h"
#include "common/client/ids.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/client/touch_evidence.h"
#include "common/client/watch.h"
#include "common/status.h"

namespace assay::cli {
namespace {

absl::StatusOr<std::vector<v1::Run>> ListedRuns(const client::Client& client,
                                                const Arguments& arguments, int64_t limit) {
  std::string entry;
  if (arguments.Has("entry")) {
    ASSIGN_OR_RETURN(entry, client::EntryName(client, arguments.Get("entry")));
  }
  if (!arguments.Has("FILTER") && !arguments.Has("since"))
    return client::ListRunsOf(client, entry, arguments.Get("state"), limit);
  std::string filter = FilterOf(arguments.All("FILTER"));
  if (!entry.empty())
    filter = absl::StrCat(filter.empty() ? "" : absl::StrCat("(", filter, ") "),
                          "entry=", client::ShortId(entry));
  Arguments others;  // the entry is said by its id
  for (const char* const name : {"state", "since"})
    if (arguments.Has(name)) others.Add(name, arguments.Get(name));
  ASSIGN_OR_RETURN(filter, WithFilterOptions(others, HistoryKind::kRun, filter));
  return FindRuns(client, filter, limit);
}

absl::StatusOr<ExitStatus> RunRunList(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const int64_t limit, ListLimit(*context, arguments));
  ASSIGN_OR_RETURN(const std::vector<v1::Run> runs, ListedRuns(*client, arguments, limit));
  ListView view{.schema = "assay.run/v1",
                .columns = RunColumns(),
                .empty_text = "no runs; 'assay submit FILE' makes some"};
  for (const v1::Run& run : runs)
    view.items.push_back(client::RunJson(run));
  RETURN_IF_ERROR(context->printer().List(view));
  if (std::ssize(runs) == limit) NoteCut(*context, limit, 0);
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunRunShow(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::Run run, client::GetRun(*client, arguments.Get("ID")));
  ShowView view{.schema = "assay.run/v1",
                .value = client::RunJson(run),
                .fields = RunFields(),
                .sections = {{"Findings", "findings", FindingColumns()},
                             {"Artifacts",
                              "artifacts",
                              {{"FILE", "file"},
                               {"SIZE", "bytes", Format::kBytes},
                               {"SHA-256", "sha256", Format::kText, 1}}}}};
  ShowEnergy(context->printer().IsStructured(), client::EnergyText(run), &view);
  if (arguments.Has("profile")) {
    ASSIGN_OR_RETURN(const Json profile, LatestProfile(*client, context->env().interrupt, run));
    if (!profile.is_null()) {
      AddProfile(profile, &view);
    } else {
      context->Note(absl::StrCat(client::ShortId(run.name()),
                                 " has no profile yet: it has trained no ",
                                 "epoch to its end, or another program than ours trained it"));
    }
  }
  if (arguments.Has("caches")) {
    ASSIGN_OR_RETURN(Json caches, CachesOf(*client, run));
    if (!caches.empty()) {
      AddCaches(std::move(caches), &view);
    } else {
      context->Note(absl::StrCat(client::ShortId(run.name()),
                                 " has no record of its caches: it has not ended, or an agent ",
                                 "of before ran it"));
    }
  }
  if (arguments.Has("bytes")) {
    ASSIGN_OR_RETURN(Json bytes, BytesOf(*client, run));
    if (!bytes.is_null()) {
      AddBytes(std::move(bytes), &view);
    } else {
      context->Note(absl::StrCat(client::ShortId(run.name()),
                                 " has no telemetry beside a log: it has not ended, or an agent ",
                                 "of before ran it"));
    }
  }
  if (arguments.Has("telemetry")) {
    ASSIGN_OR_RETURN(std::vector<NodeTelemetry> nodes, TelemetryOf(*client, run));
    RETURN_IF_ERROR(AddForeign(*client, run, &nodes));
    if (!nodes.empty()) {
      AddTelemetry(run, nodes, context->printer(), &view);
    } else {
      context->Note(absl::StrCat(client::ShortId(run.name()),
                                 " has no telemetry: it has not ended, or an agent of before ran "
                                 "it"));
    }
  }
  if (arguments.Has("touch")) {
    ASSIGN_OR_RETURN(Json touches, TouchesOf(*client, run, context->env().time_zone));
    if (!touches.empty()) {
      AddTouches(std::move(touches), &view);
    } else {
      context->Note(absl::StrCat(client::ShortId(run.name()),
                                 " has no record of a first touch: it has not ended, or none of ",
                                 "its nodes has seen one, and only its log says when it began"));
    }
  }
  RETURN_IF_ERROR(context->printer().Show(view));
  return ExitStatus::kDone;
}

// What counts as the run's first touch, which may be another node's than those printed.
void NoteTouch(Context* context, const client::Client& client, const std::string& name) {
  const absl::StatusOr<v1::Run> run = client::GetRun(client, client::ShortId(name));
  if (!run.ok()) return;
  const std::optional<double> after_ms = client::TouchAfterStartMs(*run);
  if (after_ms)
    context->Note(
        absl::StrCat("first touch of ", client::ShortId(name), ", the earliest of its ",
                     "nodes: ", client::TouchTimeText(*after_ms, client::TouchErrorMs(*run)),
                     " (assay run show ", client::ShortId(name), " --touch)"));
}

absl::StatusOr<ExitStatus> PrintEvents(Context* context, const Arguments& arguments,
                                       EventDetail detail) {
  client::RunEventQuery query;
  query.follow = arguments.Has("follow");
  if (query.follow) context->env().interrupt->Listen();
  ASSIGN_OR_RETURN(const int64_t rank, arguments.Integer("node-rank", 0));
  query.node_rank = static_cast<int32_t>(rank);
  ASSIGN_OR_RETURN(query.after_seq, arguments.Integer("after", 0));
  ASSIGN_OR_RETURN(const absl::Duration timeout,
                   arguments.Duration("timeout", absl::InfiniteDuration()));
  query.deadline = absl::Now() + timeout;
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(query.run, client::RunName(*client, arguments.Get("ID")));
  EventPrinter printer(context, detail);
  int64_t count = 0;
  const absl::Status status = client::ForEachRunEvent(*client, context->env().interrupt, query,
                                                      [&](const v1::RunEvent& event) {
                                                        ++count;
                                                        printer.Print(event);
                                                      });
  if (absl::IsCancelled(status)) {
    context->Note(absl::StrCat("detached; ", client::ShortId(query.run), " goes on"));
    return ExitStatus::kInterrupted;
  }
  if (absl::IsDeadlineExceeded(status)) {
    context->Note(absl::StrCat("timed out; ", client::ShortId(query.run), " goes on"));
    return ExitStatus::kTimedOut;
  }
  RETURN_IF_ERROR(status);
  if (printer.has_logs_stamps())
    context->Note(absl::StrCat("no node watched ", client::ShortId(query.run),
                               ": these are the stamps of its own log"));
  if (detail != EventDetail::kLog && !context->printer().IsJson())
    NoteTouch(context, *client, query.run);
  if (count == 0 && !query.follow)
    context->Note(
        absl::StrCat(client::ShortId(query.run), " has no events yet; follow it with -f"));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunLogs(Context* context, const Arguments& arguments) {
  std::optional<int64_t> rank;
  if (arguments.Has("rank")) {
    ASSIGN_OR_RETURN(rank, arguments.Integer("rank", 0));
  }
  if (arguments.Has("stderr")) return PrintOutputs(context, arguments.Get("ID"), rank);
  if (rank)
    return absl::InvalidArgumentError(
        "--rank is of --stderr; the events of another node are shown by --node-rank");
  return PrintEvents(context, arguments,
                     arguments.Has("events") ? EventDetail::kStamps : EventDetail::kLog);
}

absl::StatusOr<ExitStatus> RunEvents(Context* context, const Arguments& arguments) {
  return PrintEvents(context, arguments, EventDetail::kEverything);
}

std::vector<Option> EventOptions() {
  return {{.name = "follow", .letter = 'f', .help = "go on until the run has ended"},
          {.name = "node-rank",
           .kind = Option::Kind::kInteger,
           .value = "N",
           .help = "node of the gang; -1: all, in the coordinator's order",
           .fallback = "0",
           .min = -1},
          {.name = "after",
           .kind = Option::Kind::kInteger,
           .value = "SEQ",
           .help = "only what came after this event",
           .max = std::numeric_limits<int64_t>::max()},
          {.name = "timeout",
           .kind = Option::Kind::kDuration,
           .value = "DURATION",
           .help = "give up following after it (exit 7)"}};
}

Command LogsCommand(const std::string& path) {
  std::vector<Option> options = EventOptions();
  options.push_back(
      {.name = "events", .help = "with stamps, and what the node witnessed beside it"});
  options.push_back({.name = "stderr",
                     .help = "what its processes printed, by both streams; kept as the run ends, "
                             "well or not"});
  options.push_back({.name = "rank",
                     .kind = Option::Kind::kInteger,
                     .value = "N",
                     .help = "of --stderr: this rank's alone"});
  return {.path = path,
          .summary = "print the log of a run",
          .description =
              "Lines are byte for byte those of the result file. With -f it survives a "
              "restart of the coordinator and goes on where it was.",
          .positionals = {{.name = "ID",
                           .help = "r-901 or @last",
                           .is_required = false,
                           .completes = Completes::kRun}},
          .options = options,
          .examples = {{absl::StrCat("assay ", path, " r-901 -f --events"),
                        "the first touch of the dataset beside run_start"},
                       {absl::StrCat("assay ", path, " r-901 --stderr --rank 3"),
                        "why it failed, in the words of rank 3"},
                       {absl::StrCat("assay ", path, " @last > result.txt"), ""}},
          .run = RunLogs};
}

}  // namespace

std::vector<Command> RunCommands() {
  return {
      {.path = "run list",
       .summary = "list runs",
       .description = "What a filter may say is told by 'assay help query'.",
       .positionals = {FilterPositional("such as minutes<30; nothing: all")},
       .options = {{.name = "entry",
                    .kind = Option::Kind::kText,
                    .value = "ID",
                    .help = "of this entry only",
                    .completes = Completes::kEntry},
                   {.name = "state",
                    .kind = Option::Kind::kText,
                    .value = "STATE",
                    .help = "queued, assigned, running, uploading, succeeded, failed, "
                            "cancelled",
                    .completes = Completes::kRunState},
                   SinceOption(),
                   ListLimitOption()},
       .examples = {{"assay run list --entry e-42", ""},
                    {"assay run list --state running", ""},
                    {"assay run list 'round=v1.0 converged=false' --since 7d", ""}},
       .run = RunRunList},
      {.path = "run show",
       .summary = "show a run with its verdict and files",
       .positionals = {{.name = "ID",
                        .help = "r-901 or @last",
                        .is_required = false,
                        .completes = Completes::kRun}},
       .options = {{.name = "bytes",
                    .help = "what each node read in which epoch, from where, beside the size of "
                            "the training data"},
                   {.name = "caches",
                    .help = "how each node's caches were reset, and what proves that data was "
                            "out of memory"},
                   {.name = "profile",
                    .help = "what it did with the machine so far: arithmetic, reading, "
                            "collectives, memory"},
                   {.name = "telemetry",
                    .help = "what its nodes did meanwhile: processors, memory, disks, networks, "
                            "energy, and who else used them"},
                   {.name = "touch",
                    .help = "how each node saw the first touch of the data, and what it could "
                            "not see"}},
       .examples = {{"assay run show r-901", ""},
                    {"assay run show @last --profile", "share of the peak, waits, memory"}},
       .run = RunRunShow},
      RunFilesCommand("run files"),
      RunFilesCommand("run artifacts"),
      RunLedgerCommand(),
      RunTelemetryCommand(),
      LogsCommand("run logs"),
      {.path = "run events",
       .summary = "print all events of a run with their stamps",
       .positionals = {{.name = "ID",
                        .help = "r-901 or @last",
                        .is_required = false,
                        .completes = Completes::kRun}},
       .options = EventOptions(),
       .examples = {{"assay run events r-901 -o ndjson", "wall, monotonic and receive stamps"}},
       .run = RunEvents},
      RunReplayCommand()};
}

std::vector<Command> LogsCommands() {
  return {LogsCommand("logs")};
}

}  // namespace assay::cli
