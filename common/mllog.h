// MLLOG: the log format of MLPerf. A record is one line, ":::MLLOG " and a JSON object with the
// members namespace, time_ms, event_type, key, value, metadata. The trainer writes it; the agent
// and the rules read it. (Rules specification, section 1.)

#ifndef COMMON_MLLOG_H_
#define COMMON_MLLOG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

#include "common/json_value.h"

namespace assay {

inline constexpr absl::string_view kMllogToken = ":::MLLOG ";

// -------------------------------------------------------------------------------------- writing

enum class MllogEventType { kIntervalStart, kIntervalEnd, kPointInTime };

struct MllogRecord {
  std::string name_space;  // the member "namespace"
  int64_t time_ms = 0;     // since the Unix epoch, truncated
  MllogEventType event_type = MllogEventType::kPointInTime;
  std::string key;
  JsonValue value;
  std::string file;  // call site
  int lineno = 0;
  JsonObject metadata;  // further members; "file" and "lineno" here replace the two above
};

// The record as one line without line end, byte for byte what the reference logger writes.
std::string FormatMllog(const MllogRecord& record);

// Writes records with the clock and the sink given. As thread-safe as they are.
class MllogWriter {
 public:
  using Sink = std::function<void(absl::string_view line)>;  // one line, its line end included
  using WallClockMs = std::function<int64_t()>;              // milliseconds since the Unix epoch

  MllogWriter(WallClockMs clock, Sink sink) : clock_(std::move(clock)), sink_(std::move(sink)) {}

  void Start(absl::string_view key, JsonValue value = {}, JsonObject metadata = {},
             const char* file = __builtin_FILE(), int lineno = __builtin_LINE());
  void End(absl::string_view key, JsonValue value = {}, JsonObject metadata = {},
           const char* file = __builtin_FILE(), int lineno = __builtin_LINE());
  void Event(absl::string_view key, JsonValue value = {}, JsonObject metadata = {},
             const char* file = __builtin_FILE(), int lineno = __builtin_LINE());
  // A complete record with its own time stamp.
  void Write(const MllogRecord& record);

 private:
  WallClockMs clock_;
  Sink sink_;
};

// -------------------------------------------------------------------------------------- reading

// Walks over the lines of a file: LF, CR LF and a lone CR end a line, nothing else does.
class MllogLines {
 public:
  explicit MllogLines(absl::string_view bytes) : rest_(bytes) {}
  // Moves to the next line, without its end. False at the end of the file.
  bool Next(absl::string_view* line);
  int64_t line_number() const { return line_number_; }  // of the line last returned, from 1

 private:
  absl::string_view rest_;
  int64_t line_number_ = 0;
};

// No record of a sane log comes near: the longest published one has 1,354 bytes. Bounds the memory
// that a hostile log can take.
inline constexpr size_t kMllogLineBytesMax = size_t{16} << 20;

// The longest log that is judged. Published ones have up to 2 MB.
inline constexpr int64_t kMllogFileBytesMax = int64_t{1} << 30;

// Cuts a stream of bytes, given in pieces of any size, into the lines that MllogLines would find.
// Holds no more than one line. Not thread-safe.
class MllogLineStream {
 public:
  // `is_too_long`: the line has more than kMllogLineBytesMax bytes and holds a token; `text` is
  // then empty. A longer line without a token is free text, and comes as an empty line.
  using Sink = absl::FunctionRef<void(absl::string_view text, bool is_too_long)>;

  // Hands over every line that `bytes` complete. A line lives as long as the call of `sink`.
  void Add(absl::string_view bytes, Sink sink);
  // The stream has ended: hands over what follows the last line end, if anything does.
  void End(Sink sink);

 private:
  void Keep(absl::string_view part);
  void Finish(absl::string_view rest, Sink sink);

  std::string kept_;  // the beginning of a line whose end has not come
  bool is_begun_ = false;
  bool is_long_ = false;    // kept_ holds only what a token may begin with
  bool has_token_ = false;  // seen in what is_long_ dropped
  bool skip_line_feed_ = false;
};

enum class MllogOutcome {
  kNoRecord,    // no token: free text
  kRecord,      //
  kParseError,  // malformed; the file fails, reading goes on
  kCrash,       // the reference tool dies here; the file fails, reading stops
};

// A line as read: views into the line, its JSON checked but not built.
struct MllogLine {
  MllogOutcome outcome = MllogOutcome::kNoRecord;
  // kRecord:
  double time_ms = 0;               // may be NaN or infinite
  absl::string_view key_json;       // with its quotes; may be any JSON type
  absl::string_view value_json;     //
  absl::string_view metadata_json;  //
  // kParseError: what is wrong; kCrash: the exception's name in the reference tool ("KeyError").
  const char* problem = "";
};

// Reads one line. Never fails; `line` must outlive the result.
MllogLine ReadMllogLine(absl::string_view line);

// The text of a key that is a string; a view into the line where it holds no escape and is ASCII,
// else into `*storage`. A key of another type gives a null view (data() == nullptr).
absl::string_view MllogKey(const MllogLine& line, std::string* storage);

// Python's float(text): blanks around, underscores between digits, exponents, nan, inf, infinity,
// the decimal digits of any script. `text` is UTF-8. False (ValueError) for anything else.
bool PythonFloat(absl::string_view text, double* value);

}  // namespace assay

#endif  // COMMON_MLLOG_H_
