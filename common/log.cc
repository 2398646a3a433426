#include "common/log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "common/printable.h"

namespace assay {
namespace {

std::atomic<LogSeverity> min_severity{LogSeverity::INFO};

const char* Name(LogSeverity severity) {
  switch (severity) {
    case LogSeverity::INFO:
      return "info";
    case LogSeverity::WARNING:
      return "warning";
    case LogSeverity::ERROR:
      return "error";
    case LogSeverity::FATAL:
      return "fatal";
  }
  return "unknown";
}

// True if stderr is what systemd says is its journal (systemd.exec(5)): a child's may be another.
bool IsJournal() {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat info = {};
  return stream != nullptr && fstat(STDERR_FILENO, &info) == 0 &&
         absl::StrCat(info.st_dev, ":", info.st_ino) == stream;
}

// By which the journal knows how bad a line is (sd-daemon(3)); it takes them away.
const char* JournalPriority(LogSeverity severity) {
  switch (severity) {
    case LogSeverity::INFO:
      return "<6>";
    case LogSeverity::WARNING:
      return "<4>";
    case LogSeverity::ERROR:
      return "<3>";
    case LogSeverity::FATAL:
      return "<2>";
  }
  return "";
}

}  // namespace

LogMessage::LogMessage(LogSeverity severity, const char* file, int line) : severity_(severity) {
  const char* slash = std::strrchr(file, '/');
  stream_ << "time=" << absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone())
          << " level=" << Name(severity) << " at=" << (slash == nullptr ? file : slash + 1) << ':'
          << line << ' ';
}

LogMessage::~LogMessage() {
  if (severity_ >= min_severity.load(std::memory_order_relaxed)) {
    // What a record says may come from anybody: it stays one line, and orders no terminal.
    const std::string record =
        absl::StrCat(IsJournal() ? JournalPriority(severity_) : "", Printable(stream_.str()), "\n");
    // Nothing useful can be done if stderr is gone.
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, record.data(), record.size());
  }
  if (severity_ == LogSeverity::FATAL) std::abort();
}

std::string Quoted(absl::string_view value) {
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string Quoted(const absl::Status& status) {
  return Quoted(status.ToString());
}

void SetMinLogSeverity(LogSeverity severity) {
  min_severity.store(severity, std::memory_order_relaxed);
}

}  // namespace assay
