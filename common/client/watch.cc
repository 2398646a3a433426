#include "common/client/watch.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

#include "common/client/stubs.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_grpc.h"

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

}  // namespace

absl::Status ForEachRunEvent(const Client& client, Cancellation* cancellation, RunEventQuery query,
                             const std::function<void(const v1::RunEvent&)>& on_event) {
  return KeepReading(client, cancellation, query.deadline, [&](grpc::ClientContext* context) {
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
