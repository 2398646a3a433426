// The agent's configuration.

#ifndef WORKER_AGENT_CONFIG_H_
#define WORKER_AGENT_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "assay/v1/config.pb.h"

namespace assay::agent {

// Everything that is wrong with `config`, one sentence each: field, what it holds, what is allowed.
std::vector<std::string> ProblemsOf(const v1::WorkerConfig& config);

// `config` with every empty field that has a default filled in.
//   program_directory: where assay-worker lies, and assay-train beside it.
v1::WorkerConfig WithDefaults(v1::WorkerConfig config, const std::string& program_directory);

// Reads, validates and completes. INVALID_ARGUMENT with all problems, one a line.
absl::StatusOr<v1::WorkerConfig> LoadConfig(const std::string& path);

}  // namespace assay::agent

#endif  // WORKER_AGENT_CONFIG_H_
