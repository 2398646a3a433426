// Makes the next read of a dataset come from its storage and not from this node's memory, as the
// rules ask before every run ("caches cleared before each run", MLPerf HPC rules).

#ifndef WORKER_AGENT_CACHE_RESET_H_
#define WORKER_AGENT_CACHE_RESET_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "worker/privileged/helper.h"

namespace assay::agent {

struct CacheReset {
  std::string method;      // drop_caches: the whole page cache; fadvise: the dataset's files
  int64_t file_count = 0;  // fadvise: files given up
};

// Has what is changed on the dataset's file system written back, and writes 3 to `drop_caches_path`
// where this process may, or lets the privileged helper at `helper_socket` do so (empty: none is
// asked); else asks the kernel to give up the pages of every file below `dataset_directory` (clean
// pages only; a page in use elsewhere stays). NOT_FOUND if the directory is missing; another code
// if a file cannot be opened. Blocks.
absl::StatusOr<CacheReset> ResetCaches(
    const std::string& dataset_directory,
    const std::string& drop_caches_path = privileged::kDropCachesPath,
    const std::string& helper_socket = "");

}  // namespace assay::agent

#endif  // WORKER_AGENT_CACHE_RESET_H_
