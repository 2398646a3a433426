#include "common/log.h"

#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "common/journal.h"
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

// How bad a record is, by syslog(3), as the journal knows it.
int Priority(LogSeverity severity) {
  switch (severity) {
    case LogSeverity::INFO:
      return LOG_INFO;
    case LogSeverity::WARNING:
      return LOG_WARNING;
    case LogSeverity::ERROR:
      return LOG_ERR;
    case LogSeverity::FATAL:
      return LOG_CRIT;
  }
  return LOG_ERR;
}

// The record with fields of its own, of which journalctl can ask.
bool GiveToJournal(LogSeverity severity, const std::string& record) {
  JournalFields fields = FieldsOf(record);
  fields.emplace_back("MESSAGE", record);
  fields.emplace_back("PRIORITY", absl::StrCat(Priority(severity)));
  fields.emplace_back("SYSLOG_IDENTIFIER", program_invocation_short_name);
  return SendToJournal(kJournalSocket, fields);
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
    const std::string record = Printable(stream_.str());
    const bool is_journal = IsJournal();
    if (!is_journal || !GiveToJournal(severity_, record)) {
      // The journal takes the priority away (sd-daemon(3)).
      const std::string line =
          absl::StrCat(is_journal ? absl::StrCat("<", Priority(severity_), ">") : "", record, "\n");
      // Nothing useful can be done if stderr is gone.
      [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
    }
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
