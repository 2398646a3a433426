// Staging: copies this rank's sample files from shared to node-local storage, byte for byte.
//
// Nothing stale is ever used: a file that is there already is written anew, a copy appears under
// its name only when it is whole and of the source's size.

#ifndef WORKER_DATA_STAGING_H_
#define WORKER_DATA_STAGING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/dataset/parallel.h"

namespace assay::data {

struct StagingJob {
  std::string source_dir;
  std::string target_dir;
  std::vector<std::string> files;  // relative to both directories, such as "train/a.tfrecord"
  int threads = 4;
  bool is_cold = false;  // the copies are on the device afterwards, and nothing of them in memory
};

// Copies all files of the job and returns what was copied. Blocks; the first error stops the rest.
// NOT_FOUND: a source file is missing. RESOURCE_EXHAUSTED: the target's disk is full; the message
// says how much is needed. DATA_LOSS: a source file changed its size while it was read. Other
// codes: reading or writing failed. Every message names the file.
absl::StatusOr<dataset::Progress> StageFiles(const StagingJob& job,
                                             dataset::ProgressCallback progress = nullptr);

}  // namespace assay::data

#endif  // WORKER_DATA_STAGING_H_
