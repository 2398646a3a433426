#include "server/notify/delivery.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/log.h"
#include "common/status.h"

namespace assay::notify {
namespace {

constexpr int32_t kReadMax = 1000;
// So many events without a notice may be looked at again after a crash.
constexpr int64_t kUnsavedMax = 10'000;

// The coordinator itself, which is told everything.
core::VisibleTo Everything() {
  return {.sees_all = true};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Delivery>> Delivery::Open(DeliveryOptions options,
                                                         const Clock* clock,
                                                         std::unique_ptr<store::Reader> reader,
                                                         Hook* hook) {
  ASSIGN_OR_RETURN(std::optional<Cursor> cursor, ReadCursor(options.cursor_path));
  ASSIGN_OR_RETURN(const int64_t end, reader->LastSeq());
  if (cursor.has_value() && cursor->seq > end) {
    LOG(WARNING) << "notify hook=" << options.name << " was told up to event " << cursor->seq
                 << ", the log ends with " << end << ": it is told what happens from now on";
    cursor.reset();
  }
  if (!cursor.has_value()) {
    cursor = Cursor{.seq = end};
    const absl::Status status = WriteCursor(options.cursor_path, *cursor);
    // A coordinator serves on a full disk, too; the place is kept as soon as there is room.
    if (!status.ok() && !absl::IsResourceExhausted(status)) return status;
  }
  LOG(INFO) << "notify hook=" << options.name << " after_event=" << cursor->seq;
  return std::unique_ptr<Delivery>(
      new Delivery(std::move(options), clock, std::move(reader), hook, *std::move(cursor)));
}

Delivery::Delivery(DeliveryOptions options, const Clock* clock,
                   std::unique_ptr<store::Reader> reader, Hook* hook, Cursor cursor)
    : options_(std::move(options)),
      clock_(*clock),
      reader_(std::move(reader)),
      hook_(*hook),
      maker_(
          [this](absl::string_view kind) {
            return std::any_of(
                options_.patterns.begin(), options_.patterns.end(),
                [kind](const std::string& pattern) { return IsKindOf(pattern, kind); });
          },
          options_.web_url, reader_.get()),
      cursor_(std::move(cursor)),
      saved_seq_(cursor_.seq) {}

std::optional<absl::Duration> Delivery::Step() {
  if (pending_.has_value()) return Tell();
  if (rows_.empty()) {
    absl::StatusOr<std::vector<core::EventRow>> rows =
        reader_->EventsAfter(Everything(), core::SubmissionId(), cursor_.seq, kReadMax);
    if (!rows.ok()) {
      LOG(ERROR) << "notify hook=" << options_.name
                 << " cannot read the log of events: status=" << Quoted(rows.status());
      return kRetryMax;
    }
    if (rows->empty()) return std::nullopt;
    rows_.assign(std::move_iterator(rows->begin()), std::move_iterator(rows->end()));
  }
  FindNext();
  if (!pending_.has_value() && cursor_.seq - saved_seq_ >= kUnsavedMax) Save();
  return absl::ZeroDuration();
}

void Delivery::FindNext() {
  while (!pending_.has_value() && !rows_.empty()) {
    const core::EventRow row = std::move(rows_.front());
    rows_.pop_front();
    absl::StatusOr<std::optional<Notice>> notice = maker_.Make(row, &cursor_.away);
    cursor_.seq = row.seq;
    if (notice.ok()) {
      pending_ = *std::move(notice);
      continue;
    }
    ++given_up_;
    LOG(ERROR) << "notify hook=" << options_.name << " event=" << row.seq
               << " given up: it cannot be read: status=" << Quoted(notice.status());
  }
  if (pending_.has_value()) pending_at_us_ = pending_->at_us;
}

absl::Duration Delivery::Tell() {
  const MonoTime now = clock_.Mono();
  if (attempt_count_ > 0 && now < next_attempt_) return next_attempt_ - now;
  const absl::Status status = hook_.Deliver(pending_->document);
  if (absl::IsCancelled(status)) return kRetryMin;
  if (status.ok()) {
    ++delivered_;
    Settle();
    return absl::ZeroDuration();
  }
  ++failed_attempts_;
  if (attempt_count_++ == 0) first_attempt_ = now;
  const MonoTime end = clock_.Mono();
  if (end - first_attempt_ >= options_.retry_for) {
    ++given_up_;
    LOG(ERROR) << "notify hook=" << options_.name << " event=" << pending_->seq
               << " kind=" << pending_->kind << " given up after " << attempt_count_
               << " attempts: status=" << Quoted(status);
    Settle();
    return absl::ZeroDuration();
  }
  absl::Duration delay = kRetryMin;
  for (int i = 1; i < attempt_count_ && delay < kRetryMax; ++i)
    delay *= 2;
  delay = std::min(delay, kRetryMax);
  next_attempt_ = end + delay;
  LOG(WARNING) << "notify hook=" << options_.name << " event=" << pending_->seq
               << " kind=" << pending_->kind << " attempt=" << attempt_count_
               << " again_in=" << absl::FormatDuration(delay) << " status=" << Quoted(status);
  return delay;
}

void Delivery::Settle() {
  pending_.reset();
  pending_at_us_ = 0;
  attempt_count_ = 0;
  Save();
}

void Delivery::Save() {
  // The pending notice's event is not settled, and what came before it is as good.
  if (pending_.has_value() || cursor_.seq == saved_seq_) return;
  const absl::Status status = WriteCursor(options_.cursor_path, cursor_);
  if (status.ok()) {
    saved_seq_ = cursor_.seq;
  } else {
    LOG(WARNING) << "notify hook=" << options_.name << " event=" << cursor_.seq
                 << " would be told again after a restart: status=" << Quoted(status);
  }
}

HookFigures Delivery::figures() const {
  const int64_t pending_at_us = pending_at_us_;
  const int64_t age_us = pending_at_us == 0 ? 0 : absl::ToUnixMicros(clock_.Wall()) - pending_at_us;
  return {.hook = options_.name,
          .delivered = delivered_,
          .failed_attempts = failed_attempts_,
          .given_up = given_up_,
          .lag_seconds = absl::ToDoubleSeconds(absl::Microseconds(std::max<int64_t>(age_us, 0)))};
}

}  // namespace assay::notify
