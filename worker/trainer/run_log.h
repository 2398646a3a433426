// The run's MLLOG file as rank 0 writes it. Which keys come when is the workload's part
// (worker/trainer/workload.h). Other ranks write nothing.

#ifndef WORKER_TRAINER_RUN_LOG_H_
#define WORKER_TRAINER_RUN_LOG_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/mllog.h"
#include "worker/trainer/spec.h"

namespace assay {

// Stamps come from a RunClock: their differences are monotonic. A line is one write(2), so a reader
// never sees half of one. Not thread-safe.
class RunLog {
 public:
  // Opens the log for appending; what the agent wrote before stays. `spec` must outlive the result.
  static absl::StatusOr<std::unique_ptr<RunLog>> Open(const TrainerSpec& spec, const Clock* clock);

  void InitStart();
  // Seed and scale, then the identity of the submission.
  void Identity();
  void Scale();
  void Submission();
  void InitStop();
  // The clock starts: the caller has read no sample yet.
  void RunStart();
  void Samples();
  // `cached_bytes`: of all nodes, that their caches had already; 0 is not said.
  void StagingStart(int64_t cached_bytes);
  void StagingStop();
  // Those that every benchmark has and that are on.
  void ExtensionsOfRun();
  // `epoch` is 0-based here; the log's numbering is the round's.
  void EpochStart(int epoch, JsonObject more = {});
  void EvalStart(int epoch);
  void EvalStop(int epoch);
  void EpochStop(int epoch, JsonObject more = {});
  // While muted, lines are dropped: a resumed process repeats no header.
  void Mute(bool is_muted) { is_muted_ = is_muted; }
  // This process goes on from a checkpoint. What the killed one wrote after it stays above, and is
  // written again below.
  void Resumed(int epoch, int64_t step);
  // A record of a key that only one benchmark has.
  void Event(absl::string_view key, JsonValue value = {}, JsonObject metadata = {});
  // {"epoch_num": ...}
  JsonObject EpochNumber(int epoch) const;
  // "success" if the target was reached, else "aborted".
  void RunStop(absl::string_view status);

  // The first failure to write; once there is one nothing more is written.
  const absl::Status& status() const { return status_; }
  // How far the node's wall clock has moved against the stamps.
  absl::Duration ClockDrift() const { return clock_.Drift(); }

 private:
  RunLog(const TrainerSpec& spec, const Clock* clock, UniqueFd file);
  JsonObject EpochNumber(int epoch, JsonObject more) const;

  const TrainerSpec& spec_;
  const RunClock clock_;
  UniqueFd file_;  // closed on ranks other than 0
  absl::Status status_;
  bool is_muted_ = false;
  MllogWriter writer_;
};

}  // namespace assay

#endif  // WORKER_TRAINER_RUN_LOG_H_
