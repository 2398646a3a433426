#include "cli/follow.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

#include "cli/entry.h"
#include "cli/ids.h"
#include "cli/log_line.h"
#include "cli/resource_json.h"
#include "cli/score.h"
#include "cli/stubs.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_grpc.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr absl::Duration kStreamTimeout = absl::Hours(24 * 30);
constexpr absl::Duration kReconnectFor = absl::Hours(24);
// How long a rest without news lasts at most: the clock on the progress line moves on.
constexpr absl::Duration kRedrawEvery = absl::Seconds(1);

// True if the stream broke although nobody meant it to end.
bool IsBroken(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsInternal(status) || absl::IsAborted(status);
}

absl::Duration Remaining(absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) return kStreamTimeout;
  return std::max(deadline - absl::Now(), absl::ZeroDuration());
}

// Opens a stream again and again until it ends in order. `open_and_read` reads one stream to its
// end and returns its status.
absl::Status KeepReading(const Client& client, Interrupt* interrupt, absl::Time deadline,
                         const std::function<absl::Status(grpc::ClientContext*)>& open_and_read) {
  while (true) {
    absl::Status status;
    {
      grpc::ClientContext context;
      PrepareCall(client.endpoint(), Remaining(deadline), &context);
      const ScopedInterrupt cancel(interrupt, [&context] { context.TryCancel(); });
      status = open_and_read(&context);
    }
    if (interrupt->IsRaised()) return absl::CancelledError("interrupted");
    if (!IsBroken(status)) return status.ok() ? status : client.Explain(status);
    const absl::Time until = std::min(deadline, absl::Now() + kReconnectFor);
    // In slices, so that Ctrl-C is heard.
    while (!client.WaitUntilReachable(std::min(until, absl::Now() + absl::Milliseconds(500)))) {
      if (interrupt->IsRaised()) return absl::CancelledError("interrupted");
      if (absl::Now() >= until) return client.Explain(status);
    }
  }
}

}  // namespace

absl::Status ForEachRunEvent(const Client& client, Interrupt* interrupt, RunEventQuery query,
                             const std::function<void(const v1::RunEvent&)>& on_event) {
  return KeepReading(client, interrupt, query.deadline, [&](grpc::ClientContext* context) {
    v1::WatchRunEventsRequest request;
    request.set_run(query.run);
    request.set_node_rank(query.node_rank);
    request.set_after_seq(query.after_seq);
    request.set_follow(query.follow);
    const auto reader = client.stubs().submissions->WatchRunEvents(context, request);
    v1::RunEvent event;
    while (reader->Read(&event)) {
      query.after_seq = event.seq();
      on_event(event);
    }
    return FromGrpc(reader->Finish());
  });
}

EntryWatcher::EntryWatcher(const Client* client, Interrupt* interrupt, std::string entry)
    : client_(client), interrupt_(interrupt), entry_(std::move(entry)) {
  interrupt_id_ = interrupt_->Add([this] {
    MutexLock lock(&mutex_);
    is_interrupted_ = true;
    news_.NotifyAll();
  });
  thread_ = std::thread([this] { WatchEntry(); });
}

EntryWatcher::~EntryWatcher() {
  interrupt_->Remove(interrupt_id_);
  stop_.Raise();
  thread_.join();
  for (auto& [run, thread] : run_threads_)
    thread.join();
}

void EntryWatcher::WatchEntry() {
  int64_t after_seq = 0;
  const absl::Status status =
      KeepReading(*client_, &stop_, absl::InfiniteFuture(), [&](grpc::ClientContext* context) {
        v1::WatchEventsRequest request;
        request.set_submission(entry_);
        request.set_after_seq(after_seq);
        request.set_follow(true);
        const auto reader = client_->stubs().submissions->WatchEvents(context, request);
        v1::Event event;
        while (reader->Read(&event)) {
          after_seq = event.seq();
          MutexLock lock(&mutex_);
          has_changed_ = true;
          news_.NotifyAll();
        }
        return FromGrpc(reader->Finish());
      });
  if (!status.ok()) return Fail(status);
  MutexLock lock(&mutex_);
  has_changed_ = true;  // the stream of an entry ends with the entry
  news_.NotifyAll();
}

void EntryWatcher::WatchRun(const std::string& run) {
  if (run_threads_.count(run) > 0) return;
  run_threads_[run] = std::thread([this, run] {
    // What becomes of the run itself is told by the entry's stream.
    ForEachRunEvent(*client_, &stop_, {.run = run}, [this, run](const v1::RunEvent& event) {
      v1::RunEvent named = event;
      named.set_run(run);
      Push(named);
    }).IgnoreError();
  });
}

void EntryWatcher::Push(const v1::RunEvent& event) {
  MutexLock lock(&mutex_);
  events_.push_back(event);
  news_.NotifyAll();
}

void EntryWatcher::Fail(const absl::Status& status) {
  MutexLock lock(&mutex_);
  status_ = status;
  news_.NotifyAll();
}

EntryWatcher::News EntryWatcher::Next(absl::Duration patience) {
  MutexLock lock(&mutex_);
  const absl::Time until = absl::Now() + patience;
  while (!has_changed_ && events_.empty() && !is_interrupted_ && status_.ok()) {
    const absl::Duration left = until - absl::Now();
    if (left <= absl::ZeroDuration()) break;
    news_.WaitFor(&mutex_, absl::ToChronoNanoseconds(left));
  }
  News news;
  news.has_changed = std::exchange(has_changed_, false);
  news.events = std::exchange(events_, {});
  news.is_interrupted = is_interrupted_;
  news.status = status_;
  return news;
}

namespace {

// What the progress line shows of a run.
struct Progress {
  int64_t epoch = 0;
  TrainerProgress step;
  std::string metric;  // "eval_error 0.412"
};

// Prints runs as they end, and the progress of those that go on.
class Reporter {
 public:
  Reporter(Context* context, const Client* client)
      : context_(context), client_(client), line_(context) {}

  void Update(const EntryView& view, EntryWatcher* watcher) {
    view_ = view;
    for (const v1::Run& run : view_.runs) {
      if (run.state() == v1::Run::RUNNING) watcher->WatchRun(run.name());
      if (run.state() == v1::Run::RUNNING && started_.insert(run.name()).second &&
          !context_->CanRedraw())
        context_->Note(absl::StrCat("  ", ShortId(run.name()), "  started"));
      if (IsEnded(run.state()) && ended_.insert(run.name()).second) {
        line_.Clear();
        context_->Note(RunSummaryLine(context_->printer(), run));
      }
    }
  }

  void Add(const v1::RunEvent& event) {
    Progress& progress = progress_[event.run()];
    if (event.kind() == v1::RunEvent::FINDING) {
      line_.Clear();
      context_->Note(absl::StrCat("  ", ShortId(event.run()), "  ",
                                  context_->style().Mark(Tone::kWarn), " ", event.finding().rule(),
                                  ": ", event.finding().key(), " ", event.finding().found()));
    }
    if (event.kind() == v1::RunEvent::PROGRESS)
      progress.step = ParseProgress(event.text()).value_or(progress.step);
    if (event.kind() != v1::RunEvent::LOG_LINE) return;
    const std::optional<LogLine> line = ParseLogLine(event.text());
    if (!line.has_value()) return;
    if (line->epoch > 0) progress.epoch = line->epoch;
    if (line->key == "eval_error" || line->key == "eval_accuracy")
      progress.metric = absl::StrCat(line->key, " ", line->value);
  }

  void Redraw() {
    if (!context_->CanRedraw()) return;
    const auto running = std::find_if(view_.runs.begin(), view_.runs.end(), [](const v1::Run& run) {
      return run.state() == v1::Run::RUNNING || run.state() == v1::Run::UPLOADING ||
             run.state() == v1::Run::ASSIGNED;
    });
    const int64_t total = static_cast<int64_t>(view_.runs.size());
    const int64_t done = static_cast<int64_t>(ended_.size());
    constexpr int kBarWidth = 12;
    std::string text = absl::StrCat(
        ProgressBar(done, total, kBarWidth, context_->style().is_utf8()), " ", done, "/", total);
    if (running == view_.runs.end()) {
      absl::StrAppend(&text, "  ", StateText(view_.entry.state()));
    } else {
      const Progress& progress = progress_[running->name()];
      absl::StrAppend(&text, "  ", ShortId(running->name()), " ", StateText(running->state()));
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
  [[maybe_unused]] const Client* const client_;
  ProgressLine line_;
  EntryView view_;
  std::map<std::string, Progress> progress_;
  std::set<std::string> started_;
  std::set<std::string> ended_;
};

absl::StatusOr<EntryView> ReadEntry(const Client& client, const std::string& name) {
  EntryView view;
  v1::GetSubmissionRequest request;
  request.set_name(name);
  ASSIGN_OR_RETURN(view.entry, client.CallRetrying(request));
  ASSIGN_OR_RETURN(view.runs, AllRunsOf(client, name));
  return view;
}

absl::StatusOr<ExitStatus> Finish(Context* context, const EntryView& view) {
  RETURN_IF_ERROR(PrintScore(context, view.entry, view.runs));
  return view.entry.state() == v1::Submission::VALID ? ExitStatus::kDone : ExitStatus::kFailed;
}

absl::StatusOr<ExitStatus> RunWait(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const absl::Duration timeout,
                   arguments.Duration("timeout", absl::InfiniteDuration()));
  context->env().interrupt->Listen();
  ASSIGN_OR_RETURN(const Client* client, context->Connect());
  ASSIGN_OR_RETURN(const std::string name, EntryName(*client, arguments.Get("ID")));
  return WaitForEntry(context, *client, name, timeout);
}

}  // namespace

absl::StatusOr<ExitStatus> WaitForEntry(Context* context, const Client& client,
                                        const std::string& name, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  const std::string id = ShortId(name);
  EntryWatcher watcher(&client, context->env().interrupt, name);
  Reporter reporter(context, &client);
  EntryView view;
  while (true) {
    const absl::Duration left = deadline - absl::Now();
    const EntryWatcher::News news = watcher.Next(std::min(left, kRedrawEvery));
    if (news.is_interrupted) {
      reporter.Clear();
      context->Note(absl::StrCat("detached; ", id, " goes on. Follow again: assay wait ", id,
                                 "   end it: assay cancel ", id));
      return ExitStatus::kInterrupted;
    }
    if (!news.status.ok()) return news.status;
    for (const v1::RunEvent& event : news.events)
      reporter.Add(event);
    if (news.has_changed) {
      absl::StatusOr<EntryView> now = ReadEntry(client, name);
      // Away for longer than a retry: the stream waits for the coordinator and tells.
      if (!now.ok() && !absl::IsUnavailable(now.status())) return now.status();
      if (now.ok()) {
        view = *std::move(now);
        reporter.Update(view, &watcher);
        if (IsEnded(view.entry.state())) break;
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
           .positionals = {{.name = "ID", .help = "e-42, s-42 or @last", .is_required = false}},
           .options = {{.name = "timeout",
                        .kind = Option::Kind::kDuration,
                        .value = "DURATION",
                        .help = "give up waiting after it (exit 7)"}},
           .examples = {{"assay wait e-42 && assay entry export e-42 out", ""},
                        {"assay wait --timeout 30m", "the newest entry"}},
           .run = RunWait}};
}

}  // namespace assay::cli
