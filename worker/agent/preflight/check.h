// What the checks of a node before a set (specification of fleets, section 5) have in common.

#ifndef WORKER_AGENT_PREFLIGHT_CHECK_H_
#define WORKER_AGENT_PREFLIGHT_CHECK_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace assay::agent {

// What one check has found.
struct CheckResult {
  std::string check;         // memory
  bool is_measured = false;  // else `detail` says why not
  double value = 0;          // in `unit`: GB/s, GFLOP/s, MB/s, ms, cores
  std::string unit;
  std::string detail;   // one sentence: how it was measured, and what else was seen
  std::string problem;  // what speaks against the node whatever others measure; empty: nothing
  bool operator==(const CheckResult&) const = default;
};

// A check that could not be carried out.
inline CheckResult NotMeasured(std::string check, std::string why) {
  return {.check = std::move(check), .detail = std::move(why)};
}

// Where and how long to look. Every check ends by itself within `patience`, and in much less where
// the node is as it should be.
struct CheckOptions {
  int thread_count = 1;                          // that ranks may use
  std::string trainer_program;                   // asked for the matrix product
  std::vector<std::string> trainer_environment;  // "NAME=value"
  std::string dataset_directory;                 // empty: none
  std::string stage_directory;                   // empty: none
  bool is_staged = false;                        // the dataset is copied to stage_directory
  int64_t disk_bytes = int64_t{2} << 30;         // to read and to write
  int64_t memory_bytes = 0;  // of the triad's three arrays; 0: four times the last-level cache
  absl::Duration compute_time = absl::Seconds(5);
  absl::Duration quiet_time = absl::Seconds(5);
  absl::Duration patience = absl::Seconds(10);
  std::string gpu_program;                // empty: nvidia-smi in PATH
  std::string device_directory = "/dev";  // where the driver's files of GPUs lie: nvidia0
};

// a[i] = b[i] + 3 c[i] by all threads over arrays of which no cache holds much; GB/s read and
// written together, the mean of at least a second.
CheckResult CheckMemory(const CheckOptions& options);

// Matrix product by the trainer's own library; GFLOP/s in fp32. `detail` has the frequency of the
// cores before and after, and whether they were throttled, where the kernel says so.
CheckResult CheckCompute(const CheckOptions& options);

// Direct reads of the dataset's files by four threads; MB/s (10^6 bytes).
CheckResult CheckDatasetDisk(const CheckOptions& options);

// Direct writes to a file of the check's own in the stage directory, and a sync; MB/s of both.
// `detail` has how fast it was read back.
CheckResult CheckStageDisk(const CheckOptions& options);

// What is free in the stage directory; GB. A problem if the dataset that shall be staged does not
// fit.
CheckResult CheckStageSpace(const CheckOptions& options);

// The kernel's word on whether the clock is synchronised; no value: the offset from the coordinator
// is the agent's to measure.
CheckResult CheckClock();

// How many cores work for others than this process and its children, which do nothing meanwhile. A
// problem if it is over a twentieth of the node's and over 0.1, or if pages are swapped.
CheckResult CheckQuiet(const CheckOptions& options);

// How many of the GPUs that the trainer may use are well, as nvidia-smi says. A problem: memory
// that has lost data or waits for a reset to be mended, clocks held down by heat or power, fewer
// PCIe lanes than GPU and slot have, memory that others use, and a driver that does not answer.
CheckResult CheckGpu(const CheckOptions& options);

}  // namespace assay::agent

#endif  // WORKER_AGENT_PREFLIGHT_CHECK_H_
