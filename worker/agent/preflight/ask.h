// Another program of the node that a check asks.

#ifndef WORKER_AGENT_PREFLIGHT_ASK_H_
#define WORKER_AGENT_PREFLIGHT_ASK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace assay::agent {

struct Answer {
  int exit_code = 0;
  std::string text;  // stdout and stderr, without white space around
};

// Runs argv[0] with `environment` ("NAME=value") added; it ends with this process's group.
// DEADLINE_EXCEEDED if it had to be killed after `patience`; another error if it cannot be started.
absl::StatusOr<Answer> Ask(const std::vector<std::string>& argv,
                           const std::vector<std::string>& environment, absl::Duration patience);

}  // namespace assay::agent

#endif  // WORKER_AGENT_PREFLIGHT_ASK_H_
