// What a worker should be doing: a level, computed afresh at each question.

#ifndef SERVER_CORE_DESIRED_H_
#define SERVER_CORE_DESIRED_H_

#include <string>

#include "server/core/command.h"
#include "server/core/schedule.h"
#include "server/core/types.h"

namespace assay::core {

// What `worker` should be doing, given what `presence` says that it does:
//   EXECUTE  the run that it holds, while that has not ended; also if it does so already
//   STOP     what it executes, if that is not what it should
//   FORGET   what it has finished, once that is recorded
//   CHECK    its node, before it takes a run of a set
//   IDLE     else
// `secret` is Policy::secret. An unknown worker should be idle.
Desired DesiredFor(const State& state, const std::string& worker, const PresenceMap& presence,
                   const std::string& secret);

// True if every node that trains for the throughput set, or will, has said that it is ready. The
// answer may get lost with a restart and comes back; a worker that was told so stays so.
bool AreInstancesReady(const State& state, const PresenceMap& presence,
                       const Submission& submission);

// The secret that the ranks of one assignment share: SHA-256 of the coordinator's secret, the run
// and the generation, so that none has to be kept.
std::string RendezvousToken(const std::string& secret, RunId run, int64_t generation);

// True if the worker does what it should already, so that it need not be answered now.
bool IsSatisfied(const Desired& desired, const WorkerReport& report);

}  // namespace assay::core

#endif  // SERVER_CORE_DESIRED_H_
