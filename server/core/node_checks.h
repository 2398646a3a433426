// Pre-flight: which nodes are to be checked for which sets, and what their numbers mean. A node is
// checked once for a set: before the set's first run, and before the first run in which it takes
// the place of another. Pure functions.

#ifndef SERVER_CORE_NODE_CHECKS_H_
#define SERVER_CORE_NODE_CHECKS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/core/command.h"
#include "server/core/core.h"
#include "server/core/event.h"
#include "server/core/types.h"

namespace assay::core {

// What is to be checked for runs of the spec; nullptr: nothing.
const PreflightPolicy* FindPreflight(const Policy& policy, const SubmissionSpec& spec);

// The pre-flight that goes on on the worker; nullptr: none.
const Preflight* FindRunning(const Worker& worker);

// True if the worker's node has passed for the set.
bool IsChecked(const Submission& submission, const Worker& worker);

// What a node is, as far as its rates depend on it: "Intel Xeon, 2 cores, 23 GiB".
std::string NodeType(const Capabilities& capabilities);

// True for checks whose values are compared with those of other nodes.
bool IsCompared(const NodeCheck& check);

// Compares the check, of a node of the key's type, with the median of those before it.
//   percent: what a rate must reach of it.
void Compare(const State& state, const RateKey& key, int32_t percent, NodeCheck* check);

// The problems found by the checks with that policy: "memory 3.1 GB/s, below ...; quiet ...".
std::string ProblemsOf(const std::vector<NodeCheck>& checks, CheckPolicy policy);

// The end of the worker's pre-flight, and the drain of a node that has failed. `is_there`: it has
// just called.
void Finish(const Worker& worker, PreflightState end, const std::string& reason,
            std::vector<NodeCheck> checks, bool is_there, std::vector<Event>* events);

// The beginning of a check of the worker for the set, for which there is a policy.
Event StartPreflight(const State& state, SubmissionId submission, const std::string& worker,
                     const Policy& policy, int64_t now_us);

// What the worker is asked to do. `secret`: Policy::secret.
PreflightOrder OrderOf(const State& state, const Preflight& preflight, const std::string& secret);

// What the call says of the pre-flight that goes on on its worker: if it is done, how it ended.
void HearPreflight(const State& state, const Worker& worker, const Synchronize& command,
                   std::vector<Event>* events);

// Those that have had their time fail; those for which nobody waits any more are dropped.
std::vector<Event> AdvancePreflights(const State& state, int64_t now_us);

// The event applied: the worker is at it.
void ApplyPreflightStart(const RecordedEvent& record, const PreflightStarted& event,
                         const State& state, Worker* worker);

// The event applied: the worker's numbers, the rates of its type, and what its set knows of it.
void ApplyPreflight(const RecordedEvent& record, const PreflightFinished& event, Worker* worker,
                    State* state);

// INVALID_ARGUMENT if a report is no finite one of at most kNodeCheckCountMax checks.
absl::Status CheckReport(const PreflightReport& report);

}  // namespace assay::core

#endif  // SERVER_CORE_NODE_CHECKS_H_
