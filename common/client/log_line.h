// What runs say, as people read it: MLLOG records, progress, witnessed touches.

#ifndef COMMON_CLIENT_LOG_LINE_H_
#define COMMON_CLIENT_LOG_LINE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace assay::client {

struct LogLine {
  std::string key;
  std::string value;    // JSON text; "" for null
  int64_t epoch = 0;    // metadata's epoch_num; 0 if there is none
  int64_t time_ms = 0;  // since 1970
};

// The record in `text`; nullopt if it holds none.
std::optional<LogLine> ParseLogLine(absl::string_view text);

// True of eval_error and what else a log may call the quality of an evaluation.
bool IsQuality(absl::string_view key);

// What the trainer says of its progress: {"phase": "training", "epoch": 3, "done": 12, "total":
// 128, "loss": 0.28}. nullopt for its other records, such as profiles (run_profile.h).
struct TrainerProgress {
  std::string phase;
  int64_t epoch = 0;
  int64_t done = 0;
  int64_t total = 0;
  std::string metric;  // "loss 0.28"; empty if there is none
};
std::optional<TrainerProgress> ParseProgress(absl::string_view text);

// "training epoch 3  12/128  loss 0.28"
std::string FormatProgress(const TrainerProgress& progress);

// "/data/a.tfrecord (open, by fanotify)" for the text of a FIRST_TOUCH event, which is JSON; the
// text itself if it is not.
std::string FormatTouch(absl::string_view text);

}  // namespace assay::client

#endif  // COMMON_CLIENT_LOG_LINE_H_
