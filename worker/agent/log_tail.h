// Follows a growing text file line by line, for example result_<n>.txt.

#ifndef WORKER_AGENT_LOG_TAIL_H_
#define WORKER_AGENT_LOG_TAIL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "common/file.h"

namespace assay::agent {

struct TailLine {
  std::string text;        // without its "\n"; all other bytes as they are
  int64_t line = 0;        // 1-based
  int64_t end_offset = 0;  // of the next line in the file
};

// A line's text is cut after this many bytes, so that an event fits its batch; the file itself is
// uploaded whole. The longest published line has under 2 KiB.
inline constexpr int64_t kLineBytesMax = 256 << 10;

// Not thread-safe.
class LogTail {
 public:
  // Starts after `offset` bytes, which hold `line_count` whole lines. The file need not exist yet.
  LogTail(std::string path, int64_t offset, int64_t line_count)
      : path_(std::move(path)), offset_(offset), line_count_(line_count) {}

  // The complete lines that were appended since, about `bytes_max` of them at most: call again
  // until none comes. With `is_final`, nothing will be appended any more: a last line without "\n"
  // counts. An absent file has no lines. DATA_LOSS if the file has become shorter.
  absl::StatusOr<std::vector<TailLine>> Read(bool is_final, int64_t bytes_max = 1 << 20);

 private:
  absl::Status OpenIfThere();
  void Take(absl::string_view bytes, std::vector<TailLine>* lines);
  void EndLine(std::vector<TailLine>* lines);

  const std::string path_;
  UniqueFd fd_;
  int64_t offset_;       // read so far, `partial_` included
  int64_t line_count_;   // ended so far
  std::string partial_;  // the line that has not ended, cut at kLineBytesMax
  bool has_partial_ = false;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_LOG_TAIL_H_
