// Ranks of this host that time sums over them: processes of assay-train.

#ifndef CLI_BENCH_RANKS_H_
#define CLI_BENCH_RANKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "cli/bench/times.h"

namespace assay::cli {

struct RanksToTime {
  std::string program;    // assay-train
  std::string directory;  // for their files, each call its own
  int count = 2;
  bool on_gpus = false;  // rank r on GPU r, by NCCL; else in the hosts' memory
  absl::Duration patience;
};

// Starts the ranks and returns what rank 0 has measured. UNAVAILABLE, with what it has printed, if
// a rank fails; FAILED_PRECONDITION if it is for want of a GPU or its libraries, or a size is
// missing. Blocks; no rank is left.
absl::StatusOr<VectorTimes> TimeRanks(const RanksToTime& ranks, const std::vector<int64_t>& sizes);

// How many GPUs this host has for ranks. FAILED_PRECONDITION, with what is missing and the remedy,
// where there is none or none can be used. Blocks for a minute at most.
absl::StatusOr<int> CountGpus(const std::string& program, const std::string& directory);

}  // namespace assay::cli

#endif  // CLI_BENCH_RANKS_H_
