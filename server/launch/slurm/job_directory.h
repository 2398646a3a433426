// What the nodes of a job find: a folder for each allocation on a file system that they share with
// the coordinator, open to the service's user alone.
//
//   a12/job.sh            what sbatch runs: one agent on each node
//   a12/worker.textproto  what all agents are told, without their names
//   a12/ca.crt            by which they know the coordinator
//   a12/tokens/a12-<n>    by which the n-th enrols: once, for that name, within 10 minutes; with
//   munge
//                         only on behalf of one that has gone, by an agent on this host
//   a12/job.out           what the job and its agents have said
//   a12/salvage/a12-<n>   what the n-th could not deliver before the job ended
//
// Where nothing is shared there is job.sh alone, on this host: it tells the agents what they must
// know on their standard input, and leaves what they say on the job's first node.

#ifndef SERVER_LAUNCH_SLURM_JOB_DIRECTORY_H_
#define SERVER_LAUNCH_SLURM_JOB_DIRECTORY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "common/process.h"
#include "server/launch/slurm/job_keeper.h"

namespace assay::launch::slurm {

// What sbatch is told for one kind of nodes.
struct JobProfile {
  std::vector<std::string> options;             // --partition=main
  std::map<std::string, std::string> accounts;  // by organisation
  int64_t minutes_max = 0;                      // of a job for which nobody says how long; 0: a day
};

struct JobDirectoryOptions {
  std::string directory;       // its folders are the service's user's alone
  bool is_shared = true;       // by the nodes
  bool is_by_munge = false;    // agents enrol without a token
  std::string node_directory;  // on the nodes, where nothing is shared: for what a job says
  std::string worker_program;  // path of assay-worker on all nodes
  std::string local_program;   // of it on this host
  std::string worker_config;   // of all agents: WorkerConfig as text, without name and token
  std::string ca_pem;
  std::string command_directory;               // of srun on the nodes; empty: where they have it
  std::map<std::string, JobProfile> profiles;  // by name; empty: for jobs that name none
  std::function<absl::StatusOr<std::string>(const std::string& worker)> make_enrolment_token;
};

class JobDirectory final : public JobFolder {
 public:
  explicit JobDirectory(JobDirectoryOptions options);
  ~JobDirectory() override;  // ends what settles; the next start takes it up

  absl::StatusOr<JobRequest> Prepare(const core::Allocation& allocation) override;
  absl::Status Admit(core::AllocationId allocation,
                     const std::vector<std::string>& workers) override;
  // By an agent on this host for each that has left something. These say what they do in job.out.
  bool Settle(core::AllocationId allocation) override;
  void Close(core::AllocationId allocation, bool is_in_order) override;

 private:
  std::string PathOf(core::AllocationId allocation) const;
  std::string WorkerText(core::AllocationId allocation, const std::string& folder) const;
  std::string ScriptText(core::AllocationId allocation) const;
  absl::Status WriteFiles(core::AllocationId allocation) const;
  absl::Status WriteTokens(core::AllocationId allocation,
                           const std::vector<std::string>& workers) const;

  absl::StatusOr<ProcessId> StartSalvage(core::AllocationId allocation, const std::string& worker);

  const JobDirectoryOptions options_;
  std::map<core::AllocationId, std::vector<ProcessId>> salvages_;  // that run
};

}  // namespace assay::launch::slurm

#endif  // SERVER_LAUNCH_SLURM_JOB_DIRECTORY_H_
