// A server stream that is the tail of something stored: it fetches a page, writes it message by
// message, fetches the next, and waits to be woken when there is none. It keeps one page, so a slow
// client costs nothing but its own delay.
//
// One operation is under way at a time (a fetch or a write), and which comes next is decided in one
// place, under the mutex. gRPC may run a reaction within the call that caused it, so operations are
// started after the mutex is released.

#ifndef SERVER_API_PULL_STREAM_H_
#define SERVER_API_PULL_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include <deque>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

#include "common/mutex.h"
#include "common/rpc/status_grpc.h"

namespace assay::api {

// Deletes itself when the call is over.
template <typename Message>
class PullStream : public grpc::ServerWriteReactor<Message> {
 public:
  struct Page {
    std::deque<Message> messages;
    bool is_caught_up = false;  // nothing more is there now
    bool is_end = false;        // and nothing more will come
  };
  using Fetched = absl::AnyInvocable<void(absl::StatusOr<Page>)>;

  // `follow`: wait for more when caught up; else end then.
  explicit PullStream(bool follow) : follow_(follow) {}

  // Begins. Call once, when everything that Fetch needs is there.
  void Start() {
    Step([](State* state) { state->is_busy = false; });
  }
  // Ends a stream that shall not begin. Instead of Start.
  void Refuse(const absl::Status& status) {
    Step([&](State* state) {
      state->is_busy = false;
      if (state->status.ok()) state->status = status;
    });
  }
  // There may be more to fetch. Thread-safe; never blocks.
  void Wake() {
    Step([](State* state) { state->is_woken = true; });
  }

  void OnWriteDone(bool ok) final {
    Step([ok](State* state) {
      state->is_busy = false;
      state->page.messages.pop_front();
      if (!ok) state->status = absl::CancelledError("the client is gone");
    });
  }
  void OnCancel() final {
    Step([](State* state) { state->status = absl::CancelledError("cancelled"); });
  }
  void OnDone() final {
    Unhook();
    delete this;
  }

 protected:
  // Fetches the page after the last one and calls back exactly once, from any thread. Only one
  // fetch is under way at a time.
  virtual void Fetch(Fetched fetched) = 0;
  // OK while the caller may be told more; asked before each fetch.
  virtual absl::Status MayContinue() const { return absl::OkStatus(); }
  // After this, nobody calls Wake any more. May block on a Wake in progress.
  virtual void Unhook() {}

 private:
  struct State {
    Page page;
    bool is_woken = false;
    bool is_busy = true;  // until Start or Refuse; later: a fetch or a write is under way
    bool is_finished = false;
    absl::Status status;  // an error ends the stream at the next decision
  };
  enum class Action { kNone, kFetch, kWrite, kFinish };

  template <typename Change>
  void Step(Change change) {
    Action action = Action::kNone;
    const Message* message = nullptr;
    absl::Status status;
    {
      MutexLock lock(&mutex_);
      change(&state_);
      action = Decide();
      if (action == Action::kWrite) message = &state_.page.messages.front();
      status = state_.status;
    }
    Start(action, message, status);
  }

  Action Decide() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (state_.is_finished || state_.is_busy) return Action::kNone;
    if (!state_.status.ok()) return Finished();
    state_.is_busy = true;
    if (!state_.page.messages.empty()) return Action::kWrite;
    if (state_.page.is_end) return Finished();
    if (!state_.page.is_caught_up || state_.is_woken) {
      // What is committed from now on wakes again.
      state_.is_woken = false;
      return Action::kFetch;
    }
    if (!follow_) return Finished();
    state_.is_busy = false;
    return Action::kNone;
  }

  Action Finished() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    state_.is_finished = true;
    return Action::kFinish;
  }

  void Start(Action action, const Message* message, const absl::Status& status) {
    switch (action) {
      case Action::kNone:
        return;
      case Action::kWrite:
        // The message stays at the front of the page, in its place, until OnWriteDone.
        this->StartWrite(message);
        return;
      case Action::kFetch:
        if (absl::Status refusal = MayContinue(); !refusal.ok()) return Refuse(refusal);
        Fetch([this](absl::StatusOr<Page> page) {
          Step([&](State* state) {
            state->is_busy = false;
            if (page.ok())
              state->page = *std::move(page);
            else
              FetchFailed(page.status(), state);
          });
        });
        return;
      case Action::kFinish:
        this->Finish(ToGrpc(status));
        return;
    }
  }

  // When too many fetches wait, a stream that follows tries again at the next commit. Ending it
  // here could also run OnDone within a Wake, which Unhook must not wait for.
  void FetchFailed(const absl::Status& status, State* state) const {
    if (follow_ && status.code() == absl::StatusCode::kResourceExhausted)
      state->page = Page{.is_caught_up = true};
    else if (state->status.ok())
      state->status = status;
  }

  const bool follow_;
  Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_);
};

// A refused stream: finished before it is returned.
template <typename Message>
class RefusedStream final : public grpc::ServerWriteReactor<Message> {
 public:
  explicit RefusedStream(const absl::Status& status) { this->Finish(ToGrpc(status)); }
  void OnDone() override { delete this; }
};

}  // namespace assay::api

#endif  // SERVER_API_PULL_STREAM_H_
