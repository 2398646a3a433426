// Whether staged copies were out of memory when the clock started: where staging is off the clock,
// the rules want the data to begin on durable storage, memory excluded (HPC rules v3.0, "Timing").

#ifndef WORKER_AGENT_STAGE_CHECK_H_
#define WORKER_AGENT_STAGE_CHECK_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "common/clock.h"
#include "worker/agent/residency.h"
#include "worker/agent/run_directory.h"

namespace assay::agent {

// What no program can have read from storage within `elapsed`; empty if nothing speaks against the
// copies. Pages that are not written yet are on no storage, however many or few they are. Of those
// that are, as many may be in memory as the fastest storage delivers meanwhile, and 16 MiB.
std::string WhyStageIsWarm(const Residency& residency, absl::Duration elapsed);

// R-TIM-004 if copies below `folders` are in memory although the clock has started only at `start`,
// by the wall clock. Looks for 30 ms at most, at files drawn at random; what it cannot know it does
// not claim, and nothing once the clock has run for 10 s. A few reads beside a run that trains.
std::optional<NodeFault> CheckStage(const std::vector<std::string>& folders, absl::Time start,
                                    const Clock& clock);

}  // namespace assay::agent

#endif  // WORKER_AGENT_STAGE_CHECK_H_
