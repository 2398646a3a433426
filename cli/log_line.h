// One MLLOG record as people read it.

#ifndef CLI_LOG_LINE_H_
#define CLI_LOG_LINE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace assay::cli {

struct LogLine {
  std::string key;
  std::string value;    // JSON text; "" for null
  int64_t epoch = 0;    // metadata's epoch_num; 0 if there is none
  int64_t time_ms = 0;  // since 1970
};

// The record in `text`; nullopt if it holds none.
std::optional<LogLine> ParseLogLine(absl::string_view text);

}  // namespace assay::cli

#endif  // CLI_LOG_LINE_H_
