// One look at the node's cache, with or without an order of the coordinator that is carried out
// first: a process of its own, which the agent starts (CacheProcess) and ends at any moment.

#ifndef WORKER_AGENT_CACHE_WORK_H_
#define WORKER_AGENT_CACHE_WORK_H_

#include <string>

#include "common/clock.h"

namespace assay::agent {

inline constexpr char kCacheWorkMode[] = "cache-work";

// The files of a cache's work, all in one directory.
struct CacheWorkFiles {
  explicit CacheWorkFiles(const std::string& directory);

  std::string config;  // v1::WorkerConfig as text
  std::string order;   // v1::CacheOrder as text; no file: nothing is to be done but to look
  std::string report;  // v1::CacheReport, serialized; written anew while files are copied
};

// Takes no processor or disk that anybody else wants, and ends with its parent. Returns the code to
// exit with: 0 if there is a report, whatever it says. Blocks as long as copying takes.
int RunCacheWork(const std::string& directory, const Clock& clock);

}  // namespace assay::agent

#endif  // WORKER_AGENT_CACHE_WORK_H_
