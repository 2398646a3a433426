#include "worker/agent/log_witness.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/rules/program_log.h"
#include "common/status.h"
#include "worker/agent/run_directory.h"

namespace assay::agent {

absl::StatusOr<LogWitness> LogWitness::Arm(const std::string& log_path,
                                           const std::string& record_path, const Clock* clock) {
  UniqueFd watch(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!watch.is_open() || inotify_add_watch(watch.get(), log_path.c_str(), IN_MODIFY) < 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot watch ", log_path));
  UniqueFd record(open(record_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
                       kPrivateFile));
  if (!record.is_open())
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", record_path));
  LogWitness witness(LogTail(log_path, 0, 0), std::move(watch), std::move(record), clock);
  RETURN_IF_ERROR(witness.tail_.Read(/*is_final=*/false).status());
  return witness;
}

absl::Status LogWitness::Observe(bool is_final) {
  std::array<char, 4096> events;
  while (read(watch_.get(), events.data(), events.size()) > 0) {
  }
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<TailLine> lines, tail_.Read(is_final));
    if (lines.empty()) return absl::OkStatus();
    const Stamp stamp = StampNow(*clock_);  // afterwards: what is stamped has come by then
    for (const TailLine& line : lines) {
      std::optional<rules::TimedRecord> record = rules::ReadTimedRecord(line.text, line.line);
      if (!record.has_value() || record_count_ >= rules::kArrivalsMax) continue;
      ++record_count_;
      RETURN_IF_ERROR(
          WriteAll(record_.get(),
                   rules::ArrivalsText({{*std::move(record), stamp.wall_us, stamp.mono_ns}})));
    }
  }
}

}  // namespace assay::agent
