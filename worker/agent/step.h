// The step: a process of its own that carries one run on this node from cleared caches to the last
// trainer's end. It outlives the agent that started it, so that an agent's crash or upgrade
// disturbs no timed run; it talks to nobody but the run's directory (run_directory.h).

#ifndef WORKER_AGENT_STEP_H_
#define WORKER_AGENT_STEP_H_

#include <string>

#include "absl/time/time.h"

#include "common/clock.h"
#include "worker/agent/cache_reset.h"
#include "worker/agent/run_directory.h"

namespace assay::agent {

struct StepOptions {
  std::string drop_caches_path = privileged::kDropCachesPath;
  bool is_fanotify_allowed = true;
  absl::Duration grace = absl::Seconds(10);  // between TERM and KILL
  std::string version;                       // of this program
  std::string hold_program;                  // assay-hold (sandbox.h); empty: beside this program
  int listener_fd = -1;  // for rank 0: the socket on which the others expect it; -1: it makes one
};

// Runs the step of `directory` in this process, which must have one thread, and returns the code to
// exit with: 0 once exit.json is written, or if the step has run or been resolved before (then
// nothing is done); 1 if the directory cannot be used. SIGTERM and SIGINT stop the trainers.
//
// In order: take the lock; leave step.json; clear caches and, on node rank 0, log cache_clear; arm
// the touch monitor; start the ranks; give root up, where the agent is root (account.h); wait for
// all. The first rank that fails ends the others, as
// do a stop and the run's time limit: TERM, and KILL after `grace`.
int RunStep(const RunDirectory& directory, const StepOptions& options, const Clock* clock);

}  // namespace assay::agent

#endif  // WORKER_AGENT_STEP_H_
