// What a person wants to see while a run goes on: one line of JSON per record, for the agent to
// pass on. Never evidence, never in the MLLOG file.

#ifndef WORKER_TRAINER_PROGRESS_H_
#define WORKER_TRAINER_PROGRESS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/json_value.h"

namespace assay {

struct ProgressPoint {
  absl::string_view phase;  // staging | training | evaluation | done
  int epoch = 0;            // from 1; 0 before the first
  int64_t done = 0;         // of `total`: files, steps or batches
  int64_t total = 0;
};

// Not thread-safe. A path that cannot be opened or written is no reason to stop a run: the records
// are dropped.
class Progress {
 public:
  // `path` empty: nothing is written.
  Progress(const std::string& path, const Clock* clock);

  // Writes the record if the last one is half a second old, or if it completes its phase.
  void Report(const ProgressPoint& point, JsonObject extra = {});
  // Writes {"profile": `profile`} (worker/trainer/profile.h), whenever it comes.
  void ReportProfile(JsonObject profile);

 private:
  void Write(JsonObject record);

  const Clock* const clock_;
  UniqueFd file_;
  MonoTime last_;
  bool is_first_ = true;
};

}  // namespace assay

#endif  // WORKER_TRAINER_PROGRESS_H_
