// What one hook is told, in order and at least once. Without threads: Notifier gives it turns.

#ifndef SERVER_NOTIFY_DELIVERY_H_
#define SERVER_NOTIFY_DELIVERY_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "server/notify/cursor.h"
#include "server/notify/hook.h"
#include "server/notify/notice.h"
#include "server/store/reader.h"

namespace assay::notify {

struct DeliveryOptions {
  std::string name;                   // of the hook, for the log
  std::vector<std::string> patterns;  // of kinds that are told (IsKindOf)
  std::string web_url;                // of the site; empty: there is none
  std::string cursor_path;
  // A notice that cannot be told for so long after its first attempt is given up, and the next has
  // its turn.
  absl::Duration retry_for = absl::Hours(24);
};

// Since the daemon's start.
struct HookFigures {
  std::string hook;
  int64_t delivered = 0;
  int64_t failed_attempts = 0;
  int64_t given_up = 0;
  double lag_seconds = 0;  // age of the oldest change that is known and not told; 0: there is none
};

// Of failed attempts: 1 s, twice as long after each, at most kRetryMax.
inline constexpr absl::Duration kRetryMin = absl::Seconds(1);
inline constexpr absl::Duration kRetryMax = absl::Minutes(5);

// Not thread-safe but for figures.
class Delivery {
 public:
  // Continues from the cursor's file. Where there is none, from the end of the log at present,
  // which the file says from then on, unless the disk is full. `clock` and `hook` must outlive it.
  // Errors of ReadCursor, WriteCursor and Reader.
  static absl::StatusOr<std::unique_ptr<Delivery>> Open(DeliveryOptions options, const Clock* clock,
                                                        std::unique_ptr<store::Reader> reader,
                                                        Hook* hook);

  // Looks at some events, or tells a notice, once; blocks as long as the hook does. How long until
  // the next turn is due; nullopt: until something is committed.
  std::optional<absl::Duration> Step();

  // Makes durable how far it has come. Without it some events are looked at again, none is lost.
  void Save();

  HookFigures figures() const;

 private:
  Delivery(DeliveryOptions options, const Clock* clock, std::unique_ptr<store::Reader> reader,
           Hook* hook, Cursor cursor);

  // Until a notice is pending or the events that were read are used up.
  void FindNext();
  absl::Duration Tell();
  void Settle();

  const DeliveryOptions options_;
  const Clock& clock_;
  const std::unique_ptr<store::Reader> reader_;
  Hook& hook_;
  NoticeMaker maker_;

  Cursor cursor_;
  int64_t saved_seq_;
  std::deque<core::EventRow> rows_;  // after the cursor and the pending notice
  std::optional<Notice> pending_;
  MonoTime first_attempt_;  // of the pending one, if attempt_count_ > 0
  MonoTime next_attempt_;
  int attempt_count_ = 0;

  // Read on other threads.
  std::atomic<int64_t> delivered_ = 0;
  std::atomic<int64_t> failed_attempts_ = 0;
  std::atomic<int64_t> given_up_ = 0;
  std::atomic<int64_t> pending_at_us_ = 0;  // 0: there is none
};

}  // namespace assay::notify

#endif  // SERVER_NOTIFY_DELIVERY_H_
