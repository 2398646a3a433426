// The check of a fabric: when each node of a gang has passed its pre-flight, they all measure
// together how fast they reach each other. Rank 0 gathers the numbers and tells for all, so that
// they are judged at once: by the better of its two neighbours' links, which a slow node does not
// have and a node beside a slow one has. Of two nodes nobody can say which is slow. Pure functions.

#ifndef SERVER_CORE_FABRIC_H_
#define SERVER_CORE_FABRIC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "server/core/command.h"
#include "server/core/core.h"
#include "server/core/event.h"
#include "server/core/types.h"

namespace assay::core {

// True for the two checks that need a gang.
bool IsFabric(absl::string_view check);

// What of the policy is about fabrics, or what is not.
std::vector<NodeCheck> ChecksOf(const PreflightPolicy& policy, bool is_fabric);

// Tells a set of nodes, by their names, from all others; their order is nothing.
std::string GangKey(std::vector<std::string> nodes);

// True if the fabric between the nodes is to be checked before a run of the submission: there are
// at least two and at most kFabricNodeCountMax, and the last gang that has passed is another.
bool NeedsFabricCheck(const PreflightPolicy& policy, const Submission& submission,
                      const std::vector<std::string>& nodes);

// The beginning of the check, by the workers in rank order.
void StartFabricCheck(const State& state, SubmissionId submission,
                      const std::vector<std::string>& workers, const Policy& policy, int64_t now_us,
                      std::vector<Event>* events);

// True of a pre-flight that is the check of a gang's fabric.
bool IsOfGang(const Preflight& preflight);

// True if it is not the worker's own to tell what came of it.
bool IsToldByAnother(const Preflight& preflight);
bool IsToldByAnother(const PreflightOrder& order);

// False if it is of a gang whose rank 0 has left, or is not at the same check any more.
bool IsGangThere(const State& state, const Preflight& preflight);

// What a worker of the gang is asked to do. `secret`: Policy::secret.
FabricOrder FabricOrderOf(const State& state, const Preflight& preflight,
                          const std::string& secret);

// What the call says of the check that goes on on its worker, and which is done there: if it is
// rank 0's, how it ended for all.
void HearFabric(const State& state, const Worker& worker, const Synchronize& command,
                std::vector<Event>* events);

// The end of a worker's part applied: what its set knows of its gang.
void ApplyFabric(const Preflight& preflight, Submission* submission);

// INVALID_ARGUMENT if a report is not of finite numbers of at most kFabricNodeCountMax ranks.
absl::Status CheckFabricReport(const FabricReport& report);

}  // namespace assay::core

#endif  // SERVER_CORE_FABRIC_H_
