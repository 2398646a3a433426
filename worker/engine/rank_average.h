// Averages over the ranks of a run that a backend takes itself, in its own memory.

#ifndef WORKER_ENGINE_RANK_AVERAGE_H_
#define WORKER_ENGINE_RANK_AVERAGE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "worker/engine/tensor.h"

namespace assay {

// Part of a backend, and lives as long. Not thread-safe.
class RankAverage {
 public:
  virtual ~RankAverage() = default;

  // On one rank: what every rank must pass to Join. UNAVAILABLE: the library is not installed.
  virtual absl::StatusOr<std::string> MakeId() = 0;
  // Blocks until all `size` ranks have joined. UNAVAILABLE: the library is not installed, or a rank
  // cannot be reached.
  virtual absl::Status Join(const std::string& id, int rank, int size) = 0;
  virtual bool has_joined() const = 0;
  // Replaces each float32 of `values` by its mean over the ranks; all ranks end with the same bits.
  // If a rank is gone or silent for minutes, the process ends with ExitCode::kBackend.
  virtual void Average(const Tensor& values) = 0;
};

}  // namespace assay

#endif  // WORKER_ENGINE_RANK_AVERAGE_H_
