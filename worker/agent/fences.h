// The generations of runs that this worker has forgotten, so that a late order cannot start one of
// them again.

#ifndef WORKER_AGENT_FENCES_H_
#define WORKER_AGENT_FENCES_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace assay::agent {

// Run -> highest generation. An absent file is an empty map. DATA_LOSS if a line is no fence.
absl::StatusOr<std::map<std::string, int64_t>> LoadFences(const std::string& path);

// Durable when it returns.
absl::Status StoreFences(const std::string& path, const std::map<std::string, int64_t>& fences);

}  // namespace assay::agent

#endif  // WORKER_AGENT_FENCES_H_
