// `step_runner step DIRECTORY [--listener]`: RunStep as the agent's tests want it. STEP_FANOTIFY=0
// allows inotify only; STEP_DROP_CACHES is written to for a reset of caches. `step_runner enter
// NAME COUNT`: as assay-worker does.

#include <cstdlib>
#include <string>

#include "absl/time/time.h"

#include "common/clock.h"
#include "common/process.h"
#include "worker/agent/account.h"
#include "worker/agent/control_group.h"
#include "worker/agent/entrance.h"
#include "worker/agent/gate.h"
#include "worker/agent/run_directory.h"
#include "worker/agent/step.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == assay::agent::kRankMode)
    return assay::agent::ExecAsRank({argv + 2, argv + argc});
  if (argc > 1 && std::string(argv[1]) == assay::agent::kJoinMode)
    return assay::agent::ExecAsMember({argv + 2, argv + argc});
  if (argc > 1 && std::string(argv[1]) == assay::agent::kEnterMode)
    return assay::agent::RunEnter({argv + 2, argv + argc}, absl::Seconds(20));
  if (argc > 1 && std::string(argv[1]) == assay::agent::kGateMode)
    return assay::agent::RunGate({argv + 2, argv + argc});
  if (argc != 3 && argc != 4) return 2;
  const assay::RealClock clock;
  const char* fanotify = std::getenv("STEP_FANOTIFY");
  const char* drop_caches = std::getenv("STEP_DROP_CACHES");
  const assay::agent::StepOptions options{
      .drop_caches_path = drop_caches == nullptr ? "/nonexistent/drop_caches" : drop_caches,
      .is_fanotify_allowed = fanotify == nullptr || std::string(fanotify) != "0",
      .grace = absl::Milliseconds(300),
      .hold_program = HOLD_PROGRAM,
      .listener_fd = argc == 4 ? assay::kInheritedFd : -1};
  return assay::agent::RunStep(assay::agent::RunDirectory(argv[2]), options, &clock);
}
