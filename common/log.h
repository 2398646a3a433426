// The debug log: one logfmt line per record to stderr, for developers and operators. Anything a
// user must see is an Event, not a log line.
//
//   LOG(INFO) << "listening address=" << address;
//   CHECK(x > 0) << "x=" << x;   CHECK_OK(status);
//
// A record stays one line whatever it is told: control characters, line ends among them, are
// written as \n or \x1b. A value that may have spaces, or that others have chosen, is Quoted:
//
//   LOG(WARNING) << "refused peer=" << Quoted(peer) << " status=" << Quoted(status);
//
// CHECK is for what only we can do wrong; input never reaches one. Thread-safe: a record is written
// with a single write(2).

#ifndef COMMON_LOG_H_
#define COMMON_LOG_H_

#include <ostream>
#include <sstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace assay {

enum class LogSeverity { INFO, WARNING, ERROR, FATAL };

// One record, written when destroyed; FATAL aborts the process after writing.
class LogMessage {
 public:
  LogMessage(LogSeverity severity, const char* file, int line);
  ~LogMessage();
  LogMessage(const LogMessage&) = delete;
  LogMessage& operator=(const LogMessage&) = delete;
  std::ostream& stream() { return stream_; }

 private:
  const LogSeverity severity_;
  std::ostringstream stream_;
};

// `value` between quotation marks, with a backslash before each of its own and before each
// backslash: nothing that follows one can pass for another field of the record.
std::string Quoted(absl::string_view value);
std::string Quoted(const absl::Status& status);

// Records below `severity` are dropped from now on. INFO at start.
void SetMinLogSeverity(LogSeverity severity);

// Lets CHECK be an expression with a stream behind it: `&` binds looser than `<<`.
struct LogVoidify {
  void operator&(std::ostream&) const {}
};

}  // namespace assay

#define LOG(severity) \
  ::assay::LogMessage(::assay::LogSeverity::severity, __FILE__, __LINE__).stream()
#define CHECK(condition)                              \
  static_cast<bool>(condition) ? static_cast<void>(0) \
                               : ::assay::LogVoidify() & LOG(FATAL) << "check=\"" #condition "\" "
#define CHECK_OK(expr)                                                            \
  do {                                                                            \
    const ::absl::Status check_ok_status = (expr);                                \
    CHECK(check_ok_status.ok()) << "status=" << ::assay::Quoted(check_ok_status); \
  } while (false)

#endif  // COMMON_LOG_H_
