#include "cli/entry/follow.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

#include "cli/entry/score.h"
#include "common/client/ids.h"
#include "common/client/log_line.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/client/watch.h"
#include "common/status.h"

namespace assay::cli {
namespace {

// How long a rest without news lasts at most: the clock on the progress line moves on.
constexpr absl::Duration kRedrawEvery = absl::Seconds(1);

// What the progress line shows of a run.
struct Progress {
  int64_t epoch = 0;
  client::TrainerProgress step;
  std::string metric;  // "eval_error 0.412"
};

// Prints runs as they end, and the progress of those that go on.
class Reporter {
 public:
  Reporter(Context* context, const client::Client* client)
      : context_(context), client_(client), line_(context) {}

  void Update(const client::EntryView& view, client::EntryWatcher* watcher) {
    view_ = view;
    for (const v1::Run& run : view_.runs) {
      if (run.state() == v1::Run::RUNNING) watcher->WatchRun(run.name());
      if (run.state() == v1::Run::RUNNING && started_.insert(run.name()).second &&
          !context_->CanRedraw())
        context_->Note(absl::StrCat("  ", client::ShortId(run.name()), "  started"));
      if (client::IsEnded(run.state()) && ended_.insert(run.name()).second) {
        line_.Clear();
        context_->Note(RunSummaryLine(context_->printer(), run));
      }
    }
  }

  void Add(const v1::RunEvent& event) {
    Progress& progress = progress_[event.run()];
    if (event.kind() == v1::RunEvent::FINDING) {
      line_.Clear();
      context_->Note(absl::StrCat("  ", client::ShortId(event.run()), "  ",
                                  context_->style().Mark(Tone::kWarn), " ", event.finding().rule(),
                                  ": ", event.finding().key(), " ", event.finding().found()));
    }
    if (event.kind() == v1::RunEvent::PROGRESS)
      progress.step = client::ParseProgress(event.text()).value_or(progress.step);
    if (event.kind() != v1::RunEvent::LOG_LINE) return;
    const std::optional<client::LogLine> line = client::ParseLogLine(event.text());
    if (!line.has_value()) return;
    if (line->epoch > 0) progress.epoch = line->epoch;
    if (client::IsQuality(line->key)) progress.metric = absl::StrCat(line->key, " ", line->value);
  }

  void Redraw() {
    if (!context_->CanRedraw()) return;
    const auto running = std::find_if(view_.runs.begin(), view_.runs.end(), [](const v1::Run& run) {
      return run.state() == v1::Run::RUNNING || run.state() == v1::Run::UPLOADING ||
             run.state() == v1::Run::ASSIGNED;
    });
    const int64_t total = static_cast<int64_t>(view_.runs.size());
    const int64_t done = static_cast<int64_t>(ended_.size());
    constexpr int kEpochBarWidth = 12;
    std::string text =
        absl::StrCat(ProgressBar(done, total, kEpochBarWidth, context_->style().is_utf8()), " ",
                     done, "/", total);
    if (running == view_.runs.end()) {
      absl::StrAppend(&text, "  ", client::StateText(view_.entry.state()));
    } else {
      const Progress& progress = progress_[running->name()];
      absl::StrAppend(&text, "  ", client::ShortId(running->name()), " ",
                      client::StateText(running->state()));
      if (progress.epoch > 0) absl::StrAppend(&text, "  epoch ", progress.epoch);
      if (progress.step.total > 0)
        absl::StrAppendFormat(&text, " %3d%%", 100 * progress.step.done / progress.step.total);
      if (!progress.metric.empty()) absl::StrAppend(&text, "  ", progress.metric);
      if (running->has_start_time())
        absl::StrAppendFormat(
            &text, "  %d s",
            absl::ToInt64Seconds(context_->env().clock->Wall() -
                                 absl::FromUnixSeconds(running->start_time().seconds())));
    }
    line_.Draw(text);
  }

  void Clear() { line_.Clear(); }

 private:
  Context* const context_;
  [[maybe_unused]] const client::Client* const client_;
  ProgressLine line_;
  client::EntryView view_;
  std::map<std::string, Progress> progress_;
  std::set<std::string> started_;
  std::set<std::string> ended_;
};

absl::StatusOr<ExitStatus> Finish(Context* context, const client::EntryView& view) {
  RETURN_IF_ERROR(PrintScore(context, view.entry, view.runs));
  return view.entry.state() == v1::Submission::VALID ? ExitStatus::kDone : ExitStatus::kFailed;
}

absl::StatusOr<ExitStatus> RunWait(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const absl::Duration timeout,
                   arguments.Duration("timeout", absl::InfiniteDuration()));
  context->env().interrupt->Listen();
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const std::string name, client::EntryName(*client, arguments.Get("ID")));
  return WaitForEntry(context, *client, name, timeout);
}

}  // namespace

absl::StatusOr<ExitStatus> WaitForEntry(Context* context, const client::Client& client,
                                        const std::string& name, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  const std::string id = client::ShortId(name);
  client::EntryWatcher watcher(&client, context->env().interrupt, name);
  Reporter reporter(context, &client);
  client::EntryView view;
  while (true) {
    const absl::Duration left = deadline - absl::Now();
    const client::EntryWatcher::News news = watcher.Next(std::min(left, kRedrawEvery));
    if (news.is_cancelled) {
      reporter.Clear();
      context->Note(absl::StrCat("detached; ", id, " goes on. Follow again: assay wait ", id,
                                 "   end it: assay cancel ", id));
      return ExitStatus::kInterrupted;
    }
    if (!news.status.ok()) return news.status;
    for (const v1::RunEvent& event : news.events)
      reporter.Add(event);
    if (news.has_changed) {
      absl::StatusOr<client::EntryView> now = client::ReadEntry(client, name);
      // Away for longer than a retry: the stream waits for the coordinator and tells.
      if (!now.ok() && !absl::IsUnavailable(now.status())) return now.status();
      if (now.ok()) {
        view = *std::move(now);
        reporter.Update(view, &watcher);
        if (client::IsEnded(view.entry.state())) break;
      }
    }
    if (absl::Now() >= deadline) {
      reporter.Clear();
      context->Note(absl::StrCat("timed out; ", id, " goes on. Follow again: assay wait ", id));
      return ExitStatus::kTimedOut;
    }
    reporter.Redraw();
  }
  reporter.Clear();
  return Finish(context, view);
}

std::vector<Command> WaitCommands() {
  return {{.path = "wait",
           .summary = "follow an entry until its score is known",
           .description = "Exits with 0 if the entry is valid and 1 if not. Ctrl-C detaches (130) "
                          "and leaves the runs alone.",
           .positionals = {{.name = "ID",
                            .help = "e-42, s-42 or @last",
                            .is_required = false,
                            .completes = Completes::kEntry}},
           .options = {{.name = "timeout",
                        .kind = Option::Kind::kDuration,
                        .value = "DURATION",
                        .help = "give up waiting after it (exit 7)"}},
           .examples = {{"assay wait e-42 && assay entry export e-42 out", ""},
                        {"assay wait --timeout 30m", "the newest entry"}},
           .run = RunWait}};
}

}  // namespace assay::cli
