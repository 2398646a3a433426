// Staging: copies this rank's sample files from shared to node-local storage, byte for byte.
//
// Nothing stale is ever used: a file that is there already is written anew, a copy appears under
// its name only when it is whole and of the source's size. ADR 0191.

#ifndef WORKER_DATA_STAGING_H_
#define WORKER_DATA_STAGING_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/dataset/parallel.h"

namespace assay::data {

struct FileToStage {
  std::string name;    // relative to both directories, such as "train/a.tfrecord"
  int64_t bytes = -1;  // as the dataset's manifest says; -1: it says nothing of the file
  std::string sha256;  // that its content must have, in hexadecimal; empty: any
};

struct StagingJob {
  std::string source_dir;
  std::string target_dir;
  std::vector<FileToStage> files;
  int ranks_on_node = 1;  // that stage as much each at the same time
  // The copies are on the device afterwards, and nothing of them in memory. False: nobody waits for
  // what the device or the kernel holds back.
  bool is_cold = false;
  // Called with files whose copies have their names, and are on the device if `is_cold`; from
  // several threads at once. An error ends the job. Null: nobody asks.
  std::function<absl::Status(std::span<const FileToStage>)> placed = nullptr;
};

// What one rank has staged.
struct Staged {
  int64_t files = 0;
  int64_t bytes = 0;
  int64_t peer_bytes = 0;   // of them, that other nodes sent
  absl::Duration elapsed;   // of all of it
  absl::Duration file_p99;  // 99 of 100 files took no longer, from opening one to its last byte
  int64_t retries = 0;      // files that were read twice, because of their digest
  int window = 0;           // files in flight at the end
};

// What a node's cache has put into a job's target.
struct CachedFiles {
  int64_t files = 0;
  int64_t bytes = 0;
};

// Takes out of the job what its target holds already because it is the same file (by another name)
// as in `cache_dir`, and of the size that the job says. Looks at metadata alone.
CachedFiles TakeCached(const std::string& cache_dir, StagingJob* job);

// Makes the folders of the copies and compares what the job takes, of all ranks of the node, with
// what is free there. Only files of unknown size are looked at, none is opened. Before any rank of
// the node stages. RESOURCE_EXHAUSTED: it does not fit; the message says what there is and what it
// takes. NOT_FOUND: a source file is missing. Blocks.
absl::Status CheckStagingSpace(const StagingJob& job);

// Copies all files of the job, as many at once as make it faster, 8 to 128 on a node. Blocks; the
// first error stops the rest. NOT_FOUND: a source file is missing. RESOURCE_EXHAUSTED: the target's
// disk is full. DATA_LOSS: a source file changed its size while it was read, has another size than
// the job says, or, read twice, another digest. Other codes: reading or writing failed. Every
// message names the file.
absl::StatusOr<Staged> StageFiles(const StagingJob& job, const Clock* clock,
                                  dataset::ProgressCallback progress = nullptr);

}  // namespace assay::data

#endif  // WORKER_DATA_STAGING_H_
