// What is asked of Slurm, in the words of its commands.

#ifndef SERVER_LAUNCH_SLURM_SLURM_H_
#define SERVER_LAUNCH_SLURM_SLURM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/launch/slurm/job_list.h"

namespace assay::launch::slurm {

struct JobRequest {
  std::string name;
  std::string comment;
  int32_t node_count = 0;
  int64_t minutes = 0;
  std::string directory;             // where it runs, on all nodes
  std::string output_path;           // of what the job says, there
  std::string script_path;           // on this host
  std::vector<std::string> options;  // more of sbatch's: --partition=main
};

// Every call may take as long as Slurm takes, and is not safe to be made from two threads at once.
class Slurm {
 public:
  virtual ~Slurm() = default;

  // All jobs of this user that Slurm knows, also such as have ended. An error: it does not answer.
  virtual absl::StatusOr<std::vector<Job>> Jobs() = 0;

  // Submits a job; its number. After an error, whatever its code, the job may exist or not.
  virtual absl::StatusOr<std::string> Submit(const JobRequest& request) = 0;

  // TERM to the agents of a job that runs, which are its step 0.
  virtual absl::Status StopAgents(const std::string& job) = 0;

  virtual absl::Status Cancel(const std::string& job) = 0;

  // The state in which the job `id` of this name ended, from the site's accounting: "TIMEOUT".
  // Empty: there is none, or it knows of no such job.
  virtual std::string FindEnd(const std::string& id, const std::string& name) = 0;
};

}  // namespace assay::launch::slurm

#endif  // SERVER_LAUNCH_SLURM_SLURM_H_
