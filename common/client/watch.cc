#include "common/client/watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

#include "common/client/artifacts.h"
#include "common/client/export.h"
#include "common/client/resource_json.h"
#include "common/client/stubs.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_grpc.h"
#include "common/status.h"

namespace assay::client {
namespace {

constexpr absl::Duration kStreamTimeout = absl::Hours(24 * 30);
constexpr absl::Duration kReconnectFor = absl::Hours(24);

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
absl::Status KeepReading(const Client& client, Cancellation* cancellation, absl::Time deadline,
                         const std::function<absl::Status(grpc::ClientContext*)>& open_and_read) {
  while (true) {
    absl::Status status;
    {
      grpc::ClientContext context;
      PrepareCall(client.endpoint(), Remaining(deadline), &context);
      const ScopedCancelAction cancel(cancellation, [&context] { context.TryCancel(); });
      status = open_and_read(&context);
    }
    if (cancellation->IsRaised()) return absl::CancelledError("interrupted");
    if (!IsBroken(status)) return status.ok() ? status : client.Explain(status);
    const absl::Time until = std::min(deadline, absl::Now() + kReconnectFor);
    // In slices, so that a cancellation is heard.
    while (!client.WaitUntilReachable(std::min(until, absl::Now() + absl::Milliseconds(500)))) {
      if (cancellation->IsRaised()) return absl::CancelledError("interrupted");
      if (absl::Now() >= until) return client.Explain(status);
    }
  }
}

// The lines of its log, if the run has ended and nobody watched it.
absl::Status ForEachStoredLine(const Client& client, const RunEventQuery& query,
                               const std::function<void(const v1::RunEvent&)>& on_event) {
  if (query.node_rank > 0) return absl::OkStatus();  // the log is rank 0's
  v1::GetRunRequest request;
  request.set_name(query.run);
  ASSIGN_OR_RETURN(const v1::Run run, client.Call(request));
  const v1::ArtifactRef* const log = ResultFile(run);
  if (!IsEnded(run.state()) || run.event_count() > 0 || log == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string content, DownloadArtifact(client, *log));
  v1::RunEvent event;
  event.set_run(query.run);
  event.set_kind(v1::RunEvent::LOG_LINE);
  for (const absl::string_view line :
       absl::StrSplit(absl::StripSuffix(content, "\n"), absl::ByChar('\n'))) {
    event.set_seq(event.seq() + 1);
    event.set_line(event.seq());
    event.set_text(std::string(line));
    if (event.seq() > query.after_seq) on_event(event);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ForEachRunEvent(const Client& client, Cancellation* cancellation, RunEventQuery query,
                             const std::function<void(const v1::RunEvent&)>& on_event) {
  bool is_watched = false;
  RETURN_IF_ERROR(
      KeepReading(client, cancellation, query.deadline, [&](grpc::ClientContext* context) {
        v1::WatchRunEventsRequest request;
        request.set_run(query.run);
        request.set_node_rank(query.node_rank);
        request.set_after_seq(query.after_seq);
        request.set_follow(query.follow);
        const auto reader = client.stubs().submissions->WatchRunEvents(context, request);
        v1::RunEvent event;
        while (reader->Read(&event)) {
          is_watched = true;
          query.after_seq = event.seq();
          on_event(event);
        }
        return FromGrpc(reader->Finish());
      }));
  return is_watched ? absl::OkStatus() : ForEachStoredLine(client, query, on_event);
}

EntryWatcher::EntryWatcher(const Client* client, Cancellation* cancellation, std::string entry)
    : client_(client), cancellation_(cancellation), entry_(std::move(entry)) {
  action_id_ = cancellation_->Add([this] {
    MutexLock lock(&mutex_);
    is_cancelled_ = true;
    news_.NotifyAll();
  });
  thread_ = std::thread([this] { WatchEntry(); });
}

EntryWatcher::~EntryWatcher() {
  cancellation_->Remove(action_id_);
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
  while (!has_changed_ && events_.empty() && !is_cancelled_ && status_.ok()) {
    const absl::Duration left = until - absl::Now();
    if (left <= absl::ZeroDuration()) break;
    news_.WaitFor(&mutex_, absl::ToChronoNanoseconds(left));
  }
  News news;
  news.has_changed = std::exchange(has_changed_, false);
  news.events = std::exchange(events_, {});
  news.is_cancelled = is_cancelled_;
  news.status = status_;
  return news;
}

}  // namespace assay::client
