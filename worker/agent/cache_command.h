// `assay-worker cache`: the node's cache of datasets (worker/cache), for its operator.

#ifndef WORKER_AGENT_CACHE_COMMAND_H_
#define WORKER_AGENT_CACHE_COMMAND_H_

#include <ostream>
#include <string>
#include <vector>

#include "common/clock.h"

namespace assay::agent {

inline constexpr char kCacheMode[] = "cache";

// Carries out what the arguments after kCacheMode say and returns the code to exit with: 0; 1: it
// could not be done, `error` says why; 2: the arguments are wrong. Blocks as long as copying takes.
int RunCacheCommand(const std::vector<std::string>& arguments, const Clock& clock,
                    std::ostream* output, std::ostream* error);

}  // namespace assay::agent

#endif  // WORKER_AGENT_CACHE_COMMAND_H_
