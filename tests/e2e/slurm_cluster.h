// A Slurm of three nodes, n0 n1 n2, on this machine: munged, slurmctld and three slurmd of Debian,
// with files and a key of their own. Needs root and the ports 26817 to 26820.

#ifndef TESTS_E2E_SLURM_CLUSTER_H_
#define TESTS_E2E_SLURM_CLUSTER_H_

#include <string>
#include <vector>

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

 private:
  std::string ConfigPath() const { return dir_.Path("slurm.conf"); }
  void WriteFiles() const;
  ProcessId StartDaemon(std::vector<std::string> argv) const;

  const TempDir dir_;
  Site* const site_;
  std::vector<ProcessId> daemons_;  // munged and slurmd
  ProcessId controller_;
};

}  // namespace assay::testing

#endif  // TESTS_E2E_SLURM_CLUSTER_H_
