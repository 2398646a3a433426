#include "cli/run/run_replay.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"

#include "cli/command/context.h"
#include "cli/run/event_printer.h"
#include "common/client/ids.h"
#include "common/client/watch.h"
#include "common/status.h"

namespace assay::cli {
namespace {

// True if the wait was cut short.
bool IsInterrupted(client::Cancellation* cancellation, absl::Duration pause) {
  absl::Notification raised;
  const int id = cancellation->Add([&raised] { raised.Notify(); });
  const bool is_raised = raised.WaitForNotificationWithTimeout(pause);
  cancellation->Remove(id);
  return is_raised;
}

absl::StatusOr<ExitStatus> RunReplay(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const int64_t speed, arguments.Integer("speed", 1));
  ASSIGN_OR_RETURN(const int64_t rank, arguments.Integer("node-rank", 0));
  const bool is_paced = context->env().is_out_tty;
  if (is_paced) context->env().interrupt->Listen();
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  client::RunEventQuery query{.node_rank = static_cast<int32_t>(rank), .follow = false};
  ASSIGN_OR_RETURN(query.run, client::RunName(*client, arguments.Get("ID")));
  EventPrinter printer(context, EventDetail::kStamps);
  std::vector<v1::RunEvent> events;
  RETURN_IF_ERROR(
      client::ForEachRunEvent(*client, context->env().interrupt, query,
                              [&events](const v1::RunEvent& event) { events.push_back(event); }));
  int64_t before_us = 0;
  for (const v1::RunEvent& event : events) {
    const int64_t at_us = printer.StampOf(event);
    const absl::Duration pause = ReplayPause(before_us, at_us, speed);
    if (is_paced && pause > absl::ZeroDuration() && IsInterrupted(context->env().interrupt, pause))
      return ExitStatus::kInterrupted;
    before_us = std::max(before_us, at_us);
    printer.Print(event);
  }
  if (printer.has_logs_stamps())
    context->Note(absl::StrCat("no node watched ", client::ShortId(query.run),
                               ": these are the stamps of its own log"));
  if (events.empty()) context->Note(absl::StrCat(client::ShortId(query.run), " has no events yet"));
  return ExitStatus::kDone;
}

}  // namespace

absl::Duration ReplayPause(int64_t before_us, int64_t at_us, int64_t speed) {
  if (before_us <= 0 || at_us <= before_us || speed < 1) return absl::ZeroDuration();
  return absl::Microseconds(at_us - before_us) / speed;
}

Command RunReplayCommand() {
  return {.path = "run replay",
          .summary = "print the log of a run again, at the pace at which it came",
          .description =
              "Each line when it came, with its stamps and what the node witnessed, as 'logs "
              "--events' shows them: pauses, the first touch of the data and slow epochs are seen "
              "as they were. Into a pipe or file everything is written at once. Of a run that "
              "goes on: what there is so far.",
          .positionals = {{.name = "ID",
                           .help = "r-901 or @last",
                           .is_required = false,
                           .completes = Completes::kRun}},
          .options = {{.name = "speed",
                       .kind = Option::Kind::kInteger,
                       .value = "N",
                       .help = "N times as fast as it was",
                       .fallback = "1",
                       .min = 1},
                      {.name = "node-rank",
                       .kind = Option::Kind::kInteger,
                       .value = "N",
                       .help = "node of the gang; -1: all, in the coordinator's order",
                       .fallback = "0",
                       .min = -1}},
          .examples = {{"assay run replay r-901", "in its own time; Ctrl-C ends it"},
                       {"assay run replay r-901 --speed 60", "a minute in a second"}},
          .run = RunReplay};
}

}  // namespace assay::cli
