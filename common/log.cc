#include "common/log.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

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
    const std::string record = Printable(stream_.str()) + '\n';
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
