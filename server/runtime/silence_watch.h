// Calls whose peer stays silent in the middle of what it sends, and their end.

#ifndef SERVER_RUNTIME_SILENCE_WATCH_H_
#define SERVER_RUNTIME_SILENCE_WATCH_H_

#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/mutex.h"

namespace assay::runtime {

// Thread-safe. A thread of its own looks at all calls once a second.
class SilenceWatch {
 public:
  // One call: it is the peer's turn, or ours, or it is over. Thread-safe.
  class Turn {
   public:
    // Now the peer has to send. From here on it may be found silent.
    void GiveToPeer() ABSL_LOCKS_EXCLUDED(mutex_);
    // The peer has sent something. False if it was found silent before: then whoever was told of
    // the silence ends the call, and nobody else.
    [[nodiscard]] bool TakeBack() ABSL_LOCKS_EXCLUDED(mutex_);

   private:
    friend class SilenceWatch;
    enum class Whose { kOurs, kPeers, kOver };
    Turn(const Clock* clock, absl::AnyInvocable<void()> on_silence)
        : clock_(clock), on_silence_(std::move(on_silence)) {}
    void EndIfSilent(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mutex_);

    const Clock* const clock_;
    absl::AnyInvocable<void()> on_silence_;  // called once, by who has made it kOver
    Mutex mutex_;
    Whose whose_ ABSL_GUARDED_BY(mutex_) = Whose::kOurs;
    MonoTime since_ ABSL_GUARDED_BY(mutex_);
  };

  // The longest that a peer may take from one message to the next.
  static constexpr absl::Duration kLimit = absl::Seconds(30);

  // `clock` must outlive this.
  explicit SilenceWatch(const Clock* clock);
  ~SilenceWatch();
  SilenceWatch(const SilenceWatch&) = delete;
  SilenceWatch& operator=(const SilenceWatch&) = delete;

  // Watches a call, in our turn, until its Turn is dropped. `on_silence` is called at most once, on
  // the watch's thread, and must not block; what it refers to must live while it is the peer's turn
  // and until it has returned.
  std::shared_ptr<Turn> Watch(absl::AnyInvocable<void()> on_silence);

  // Looks at all calls now. For tests with a fake clock.
  void Look();

 private:
  void Loop();

  const Clock* const clock_;
  Mutex mutex_;
  CondVar wake_;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Shared with the calls, which end by themselves.
  std::vector<std::weak_ptr<Turn>> turns_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: starts when all else is there
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_SILENCE_WATCH_H_
