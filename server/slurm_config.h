// The launcher "slurm" as configured (SlurmConfig of config.proto).

#ifndef SERVER_SLURM_CONFIG_H_
#define SERVER_SLURM_CONFIG_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "assay/v1/config.pb.h"

#include "server/api/node_enrolment.h"
#include "server/core/command.h"
#include "server/launch/slurm/slurm_launcher.h"

namespace assay {

// What does not hold in config.launcher, each with its field.
std::vector<std::string> SlurmProblems(const v1::ServerConfig& config);

// What munge, where it is needed, and Slurm say against jobs as configured, the latter a line for
// each profile: asks them, so call it only where people wait. Empty: they would take them.
std::vector<std::string> SlurmWarnings(const v1::SlurmConfig& config);

// All but the clock, the tokens and the way to the core. `worker_program` is the path on the nodes.
// Makes what is not there yet: the directory of jobs, and the word by which this coordinator's jobs
// are known, in the data directory.
absl::StatusOr<launch::slurm::SlurmOptions> SlurmOptionsOf(const v1::ServerConfig& config,
                                                           const std::string& worker_program);

// By which nodes of its jobs enrol; nullptr: by tokens.
std::unique_ptr<api::NodeEnrolment> MakeNodeEnrolment(const v1::ServerConfig& config);

// One allocation for each submission, up to what is configured.
core::LauncherStarted DescribeSlurm(const v1::SlurmConfig& config);

}  // namespace assay

#endif  // SERVER_SLURM_CONFIG_H_
