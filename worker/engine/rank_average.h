// What the devices of a run's ranks say to each other by themselves, in a backend's own memory:
// averages, and messages between ranks.
//
// Like operations, what is asked for here joins the backend's stream of work, in the order of the
// calls: inside of a section (Backend::BeginSection) it is recorded and replayed with the rest. All
// ranks make the same calls in the same order.

#ifndef WORKER_ENGINE_RANK_AVERAGE_H_
#define WORKER_ENGINE_RANK_AVERAGE_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "worker/engine/tensor.h"

namespace assay {

// Whose values a mean is taken of: of all ranks, or of the consecutive ones of this rank's group.
enum class RankScope : int32_t { kAll, kGroup };

// How this rank joins the others.
struct RanksToJoin {
  std::string id;  // of RankAverage::MakeId, the same on all ranks
  int rank = 0;
  int size = 1;
  int group_size = 1;      // of RankScope::kGroup; divides `size`
  absl::Duration timeout;  // for all to join, and later for a rank that is silent
};

// What goes to and comes from one other rank, float32. Empty tensors are no message.
struct RankTransfer {
  int rank = 0;
  Tensor sent;
  Tensor received;
};

// What a rank has had to do with others besides averages of all.
struct RankTraffic {
  int64_t exchanges = 0;  // means of its group, and exchanges of messages
  int64_t bytes = 0;      // averaged in the one, sent in the other
};

// Part of a backend, and lives as long. Not thread-safe.
//
// If a rank is gone, or silent for longer than the timeout, the process ends with
// ExitCode::kBackend.
class RankAverage {
 public:
  virtual ~RankAverage() = default;

  // On one rank: what every rank must pass to Join. UNAVAILABLE: the library is not installed.
  virtual absl::StatusOr<std::string> MakeId() = 0;
  // Blocks until all ranks have joined, no longer than the timeout. UNAVAILABLE: the library is not
  // installed. INTERNAL: a rank did not come in time or cannot be reached; says which rank this is,
  // how long it has waited and what to look at.
  virtual absl::Status Join(const RanksToJoin& ranks) = 0;
  virtual bool has_joined() const = 0;

  // Replaces each float32 of `values` by its mean over the ranks; all of them end with the same
  // bits.
  virtual void Average(const Tensor& values, RankScope scope) = 0;
  // The same over all ranks, beside the work that follows, which must leave `values` alone until
  // Finish.
  virtual void Start(const Tensor& values) = 0;
  // What follows comes after all that was started.
  virtual void Finish() = 0;
  // Sends and receives all of it at once. What is received lies in nothing else of it.
  virtual void Exchange(std::span<const RankTransfer> transfers) = 0;

  // So far.
  virtual RankTraffic traffic() const { return {}; }
};

}  // namespace assay

#endif  // WORKER_ENGINE_RANK_AVERAGE_H_
