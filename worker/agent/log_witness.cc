#include "worker/agent/log_witness.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/mllog.h"
#include "common/rules/program_log.h"
#include "common/status.h"
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

absl::Status LogWitness::Observe(bool is_final) {
  std::array<char, 4096> events;
  while (read(watch_.get(), events.data(), events.size()) > 0) {
  }
  RETURN_IF_ERROR(CopyPrinted(is_final));
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<TailLine> lines, log_.Read(is_final));
    if (lines.empty()) return absl::OkStatus();
    const Stamp stamp = StampNow(*clock_);  // afterwards: what is stamped has come by then
    for (const TailLine& line : lines) {
      std::optional<rules::TimedRecord> record = rules::ReadTimedRecord(line.text, line.line);
      if (!record.has_value()) continue;
      init_.Take(record->key, stamp);
      if (record_count_ >= rules::kArrivalsMax) continue;
      ++record_count_;
      RETURN_IF_ERROR(
          WriteAll(record_.get(),
                   rules::ArrivalsText({{*std::move(record), stamp.wall_us, stamp.mono_ns}})));
    }
  }
}

}  // namespace assay::agent
