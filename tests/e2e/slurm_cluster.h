// A Slurm of three nodes, n0 and n1 in rack0 and n2 in rack1, with partitions main and spare, whose
// jobs those of main may end, on this machine: munged, slurmctld and three slurmd of Debian, with
// files and a key of their own. Needs root and the ports 26817 to 26820.

#ifndef TESTS_E2E_SLURM_CLUSTER_H_
#define TESTS_E2E_SLURM_CLUSTER_H_

#include <string>
#include <vector>

#include "absl/time/time.h"

#include "common/file.h"
#include "common/process.h"
#include "tests/e2e/site.h"
#include "tests/support/temp_dir.h"

namespace assay::testing {

class SlurmCluster {
 public:
  // Why it cannot be started here; empty: it can.
  static std::string Obstacle();

  // Starts the daemons and waits until all nodes are idle; fails the test if they are not within 20
  // s. Commands of `site` talk to it from now on.
  explicit SlurmCluster(Site* site);
  // Ends daemons, jobs and what they have started.
  ~SlurmCluster();

  // The output of one of Slurm's commands; fails the test if it fails.
  std::string Run(std::vector<std::string> argv) const;

  // The end of slurmctld, which saves its state, and its next start with that.
  void StopController();
  void StartController();
  // Waits until slurmctld has saved this file of its state after a change at `since`.
  void AwaitSavedState(const std::string& file_name, absl::Time since) const;
  // kill -9 of slurmctld.
  void KillController();
  // kill -9 of the slurmd of node n<i>, whose steps go on, and its next start.
  void KillNode(size_t i);
  void StartNode(size_t i);

  // Of its munged.
  std::string MungeSocket() const { return dir_.Path("munge.sock"); }

 private:
  std::string ConfigPath() const { return dir_.Path("slurm.conf"); }
  void WriteFiles() const;
  ProcessId StartDaemon(std::vector<std::string> argv) const;

  const UniqueFd turn_;  // of all on this machine, since the ports are the same
  const TempDir dir_;
  Site* const site_;
  std::vector<ProcessId> nodes_;  // slurmd
  ProcessId munge_;
  ProcessId controller_;
};

}  // namespace assay::testing

#endif  // TESTS_E2E_SLURM_CLUSTER_H_
