#include "worker/agent/log_witness.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/mllog.h"
#include "common/rules/arrivals.h"
#include "common/status.h"
#include "worker/agent/clock_watch.h"
#include "worker/agent/pause_watch.h"
#include "worker/agent/run_directory.h"

namespace assay::agent {

absl::StatusOr<LogWitness> LogWitness::Arm(const std::string& log_path,
                                           const std::string& printed_path,
                                           const std::string& record_path, const Clock* clock) {
  const auto open_to_append = [](const std::string& path) {
    return UniqueFd(
        open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, kPrivateFile));
  };
  UniqueFd record = open_to_append(record_path);
  if (!record.is_open())
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", record_path));
  const bool is_printed = !printed_path.empty();
  const std::string& watched = is_printed ? printed_path : log_path;
  if (is_printed && !open_to_append(printed_path).is_open())
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", printed_path));
  UniqueFd watch(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!watch.is_open() || inotify_add_watch(watch.get(), watched.c_str(), IN_MODIFY) < 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot watch ", watched));
  LogWitness witness(LogTail(log_path, 0, 0), std::move(watch), std::move(record), clock);
  RETURN_IF_ERROR(witness.log_.Read(/*is_final=*/false).status());
  witness.looked_ns_ = ReadClockNs(CLOCK_MONOTONIC);
  if (!is_printed) return witness;
  witness.printed_.emplace(printed_path, 0, 0);
  RETURN_IF_ERROR(witness.printed_->Read(/*is_final=*/false).status());
  witness.copy_ = open_to_append(log_path);
  if (!witness.copy_.is_open())
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", log_path));
  return witness;
}

absl::Status LogWitness::CopyPrinted(bool is_final) {
  while (printed_.has_value()) {
    ASSIGN_OR_RETURN(const std::vector<TailLine> lines, printed_->Read(is_final));
    if (lines.empty()) break;
    std::string records;
    for (const TailLine& line : lines)
      if (absl::StrContains(line.text, kMllogToken)) absl::StrAppend(&records, line.text, "\n");
    RETURN_IF_ERROR(WriteAll(copy_.get(), records));
  }
  return absl::OkStatus();
}

void LogWitness::Wait() {
  delay_ns_ = ThreadWaitNs();
  wait_ns_ = ReadClockNs(CLOCK_MONOTONIC);
}

// What was written before the wait began was not seen until now, which is at once then: the wait
// ends as it begins.
int64_t LogWitness::LateNs(int64_t now_ns, int64_t stall_ns) const {
  const int64_t busy_ns = (wait_ns_ == 0 ? now_ns : wait_ns_) - looked_ns_;
  const int64_t delay_ns = wait_ns_ == 0 ? 0 : ThreadWaitNs() - delay_ns_;
  return busy_ns + delay_ns + std::max<int64_t>(stall_ns, 0);
}

absl::Status LogWitness::Observe(bool is_final, int64_t stall_ns) {
  absl::Status status = Look(is_final, stall_ns);
  looked_ns_ = ReadClockNs(CLOCK_MONOTONIC);
  wait_ns_ = 0;
  return status;
}

absl::Status LogWitness::Look(bool is_final, int64_t stall_ns) {
  std::array<char, 4096> events;
  while (read(watch_.get(), events.data(), events.size()) > 0) {
  }
  RETURN_IF_ERROR(CopyPrinted(is_final));
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<TailLine> lines, log_.Read(is_final));
    if (lines.empty()) return absl::OkStatus();
    const Stamp stamp = StampNow(*clock_);  // afterwards: what is stamped has come by then
    const ClockReading clocks = ReadClocks();
    for (const TailLine& line : lines) {
      std::optional<rules::TimedRecord> record = rules::ReadTimedRecord(line.text, line.line);
      if (!record.has_value()) continue;
      init_.Take(record->key, stamp);
      RETURN_IF_ERROR(Keep({.record = *std::move(record),
                            .wall_us = clocks.wall_ns / 1000,
                            .mono_ns = clocks.mono_ns,
                            .raw_ns = clocks.raw_ns,
                            .boot_ns = clocks.boot_ns,
                            .late_ns = LateNs(clocks.mono_ns, stall_ns)}));
    }
  }
}

absl::Status LogWitness::Keep(const rules::Arrival& arrival) {
  ++record_count_;
  const int64_t passed_us =
      arrival.wall_us - static_cast<int64_t>(std::clamp(arrival.record.time_ms, 0.0, 1e15) * 1000);
  least_us_ = std::min(least_us_, passed_us);
  greatest_us_ = std::max(greatest_us_, passed_us);
  const bool times_the_run = arrival.record.TimesTheRun();
  if (!times_the_run && rules::IsStampedRight(arrival)) return absl::OkStatus();
  size_t& count = times_the_run ? timing_count_ : stray_count_;
  if (count >= (times_the_run ? rules::kArrivalsMax : rules::kStrayArrivalsMax))
    return absl::OkStatus();
  ++count;
  return WriteAll(record_.get(), rules::ArrivalsText({arrival}));
}

std::string LogWitness::Summary() const {
  if (record_count_ == 0) return "records=0";
  return absl::StrFormat("records=%d arrived_ms=%.3f..%.3f after their stamps", record_count_,
                         static_cast<double>(least_us_) / 1000,
                         static_cast<double>(greatest_us_) / 1000);
}

}  // namespace assay::agent
