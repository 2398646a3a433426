#include "cli/top/top.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"

#include "cli/command/context.h"
#include "cli/terminal/screen.h"
#include "cli/top/activity.h"
#include "common/file.h"
#include "common/mutex.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr absl::Duration kIntervalDefault = absl::Seconds(2);
constexpr absl::Duration kIntervalMin = absl::Milliseconds(500);
constexpr absl::Duration kIntervalMax = absl::Hours(1);
constexpr absl::Duration kRedrawEvery = absl::Seconds(1);
// Beyond the interval, an answer takes no longer as a rule.
constexpr absl::Duration kAnswerPatience = absl::Seconds(3);

// Reads on a thread of its own, so that a coordinator that is slow or away keeps nobody from
// leaving.
class Poller {
 public:
  Poller(const client::Client* client, absl::Duration interval)
      : interval_(interval),
        news_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        reader_(client),
        thread_([this] { Loop(); }) {}

  // True while the coordinator is asked.
  bool IsReading() {
    MutexLock lock(&mutex_);
    return is_reading_;
  }

  // Waits for the request under way.
  ~Poller() {
    {
      MutexLock lock(&mutex_);
      is_stopping_ = true;
      wake_.NotifyAll();
    }
    thread_.join();
  }
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Readable when there is something to Take.
  int news_fd() const { return news_fd_.get(); }
  void Wake() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(news_fd_.get(), &one, sizeof(one));
  }

  // What has been read last, once.
  std::optional<absl::StatusOr<Activity>> Take() {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t drained = read(news_fd_.get(), &count, sizeof(count));
    MutexLock lock(&mutex_);
    return std::exchange(newest_, std::nullopt);
  }

 private:
  void Loop() {
    for (;;) {
      absl::StatusOr<Activity> activity = reader_.Read();
      MutexLock lock(&mutex_);
      newest_ = std::move(activity);
      is_reading_ = false;
      Wake();
      const absl::Time due = absl::Now() + interval_;
      while (!is_stopping_ && absl::Now() < due)
        wake_.WaitFor(&mutex_, absl::ToChronoNanoseconds(due - absl::Now()));
      if (is_stopping_) return;
      is_reading_ = true;
    }
  }

  const absl::Duration interval_;
  const UniqueFd news_fd_;
  ActivityReader reader_;  // of the thread
  Mutex mutex_;
  CondVar wake_;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_reading_ ABSL_GUARDED_BY(mutex_) = true;
  std::optional<absl::StatusOr<Activity>> newest_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses all of the above
};

// Until q or Ctrl-C. An error before anything was seen ends it, a later one is shown.
absl::StatusOr<ExitStatus> Follow(Context* context, Poller* poller, Screen* screen,
                                  absl::Duration interval, const std::string& key) {
  Environment env = context->env();
  Interrupt* const interrupt = env.interrupt;
  const client::ScopedCancelAction on_interrupt(interrupt, [poller] { poller->Wake(); });
  Json shown;
  std::string problem;
  absl::Time heard_at = absl::Now();
  for (;;) {
    if (std::optional<absl::StatusOr<Activity>> news = poller->Take(); news.has_value()) {
      if (!news->ok() && shown.is_null()) return news->status();
      heard_at = absl::Now();
      problem = news->ok()
                    ? ""
                    : absl::StrReplaceAll(absl::StrCat("not newer: ", news->status().message()),
                                          {{"\n", " "}});
      if (news->ok()) shown = ActivityJson(**news, key, env.clock->Wall());
    }
    const absl::Duration silence = absl::Now() - heard_at;
    if (silence > interval + kAnswerPatience)
      problem = absl::StrCat("not newer: the coordinator has not answered for ",
                             absl::ToInt64Seconds(silence), " s");
    const Screen::Size size = screen->size();
    env.width = size.width;
    if (shown.is_null()) {
      screen->Draw({Truncate(problem.empty() ? "asking the coordinator; q ends it" : problem,
                             size.width, context->style().is_utf8())});
    } else {
      screen->Draw(ActivityLines(shown, env, context->printer().options(),
                                 static_cast<size_t>(size.height), problem));
    }
    const char pressed = screen->WaitForKey(poller->news_fd(), kRedrawEvery);
    if (pressed == 'q' || pressed == 'Q') return ExitStatus::kDone;
    if (interrupt->IsRaised()) return ExitStatus::kDone;
  }
}

absl::StatusOr<ExitStatus> PrintOnce(Context* context, const client::Client& client,
                                     const std::string& key) {
  ActivityReader reader(&client);
  ASSIGN_OR_RETURN(const Activity activity, reader.Read());
  const Json json = ActivityJson(activity, key, context->env().clock->Wall());
  const Printer& printer = context->printer();
  if (printer.IsJson()) {
    RETURN_IF_ERROR(printer.Show({.schema = "assay.top/v1", .value = json}));
  } else if (printer.IsStructured()) {
    RETURN_IF_ERROR(printer.List(
        {.schema = "assay.node/v1", .items = json.at("nodes"), .columns = NodeColumns()}));
  } else {
    for (const std::string& line :
         ActivityLines(json, context->env(), printer.options(), std::numeric_limits<size_t>::max(),
                       /*problem=*/""))
      context->out() << line << "\n";
  }
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunTop(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(absl::Duration interval, arguments.Duration("interval", kIntervalDefault));
  if (interval < kIntervalMin || interval > kIntervalMax)
    return absl::InvalidArgumentError("--interval: expected 0.5 s to 1 h");
  const std::string key = arguments.Get("sort");
  if (!arguments.Has("once") && !context->printer().IsStructured() && context->env().is_out_tty) {
    context->env().interrupt->Listen();
    ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
    Poller poller(client, interval);
    std::unique_ptr<Screen> screen = Screen::Open(&context->env(), STDIN_FILENO, STDOUT_FILENO);
    if (screen != nullptr) {
      absl::StatusOr<ExitStatus> end = Follow(context, &poller, screen.get(), interval, key);
      screen.reset();
      // Who has left does not wait for a coordinator that does not answer: it was only asked.
      if (end.ok() && poller.IsReading()) _exit(static_cast<int>(*end));
      return end;
    }
  }
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  return PrintOnce(context, *client, key);
}

}  // namespace

std::vector<Command> TopCommands() {
  return {
      {.path = "top",
       .summary = "watch the runs that go on and what their nodes do",
       .description =
           "Shows the runs first, with the epoch and the newest quality of their logs, then the "
           "nodes: the share of their processors that the run uses (CPU) and others (OTHERS), "
           "memory in use, GPUs, power, and what goes to and from storage and network in a second. "
           "AGE says how old that is: a node tells it every 5 seconds, and only while a run is on "
           "it. What a node cannot measure is left out. Submitters see figures of nodes with runs "
           "of their own. q or Ctrl-C ends it. Where the output is no terminal, or asked for with "
           "-o, it is printed once; -o csv and -o plain have the nodes, JSON has runs, too.",
       .options = {{.name = "interval",
                    .kind = Option::Kind::kDuration,
                    .value = "DURATION",
                    .help = "how often it is drawn anew",
                    .fallback = "2s"},
                   {.name = "sort",
                    .kind = Option::Kind::kChoice,
                    .value = "KEY",
                    .help = "which nodes come first: those with most of it",
                    .choices = NodeSortKeys(),
                    .fallback = NodeSortKeys().front()},
                   {.name = "once", .help = "print it once and end"}},
       .examples = {{"assay top", ""},
                    {"assay top --sort others", "nodes first that somebody else uses"},
                    {"assay top --interval 10s --sort power", ""},
                    {"assay top --once", "one listing, as for a log"},
                    {"assay top --json=nodes", ""}},
       .run = RunTop}};
}

}  // namespace assay::cli
