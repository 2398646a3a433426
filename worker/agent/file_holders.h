// Names the processes that keep pages of files in memory by mapping them.

#ifndef WORKER_AGENT_FILE_HOLDERS_H_
#define WORKER_AGENT_FILE_HOLDERS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "worker/agent/residency.h"

namespace assay::agent {

struct FileHolder {
  pid_t pid = 0;
  std::string process;  // its name
  uid_t account = 0;
  std::string path;  // of the first such file that it maps
};

struct FileHolders {
  std::vector<FileHolder> holders;  // at most a hundred
  int64_t hidden_count = 0;         // processes whose maps this one may not see
};

// Who maps one of `files` now, by /proc/PID/maps.
FileHolders FindHolders(const std::vector<ResidentFile>& files);

// "python3 (pid 712, account 1000) maps /data/train/a", for several with "; " between.
std::string Describe(const FileHolders& found);

}  // namespace assay::agent

#endif  // WORKER_AGENT_FILE_HOLDERS_H_
