// Which queued runs start where, and why the others do not. Placement is of whole gangs, each from
// one allocation, first in first out by run id. The runs of a set use the same nodes in the same
// order: those of the run of the set that was placed last. In the place of a node that is not there
// any more (lost, gone, draining, without the labels) comes another; one that is silent is waited
// for. The instances of a throughput set are placed together or not at all, each on nodes of its
// own. A run that has to wait for busy workers keeps those free ones that it could use: no later
// run overtakes it on a worker that it wants, so it is placed at the latest when the runs before it
// have ended. A run that no allocation can hold with all workers that are there, or whose
// organisation is at its limit, keeps nothing. Where the operator wants nodes checked, a run starts
// on nodes that have passed for its set; those of its gang that have not are checked first, then
// the fabric between them all, and while any is, the set waits and keeps the others.
//
// Where a run may start from a node's cache, and more nodes are free than it needs, a node that has
// its dataset comes in the place of one of the same kind (type, backends, labels) that has not.
// Nothing else is changed by what nodes have: neither when a run starts, nor how many nodes of
// which kind it gets, so that nobody after it finds other kinds left, nor which allocation. ADR
// 0206.

#ifndef SERVER_CORE_PLANNER_H_
#define SERVER_CORE_PLANNER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/core/event.h"
#include "server/core/schedule.h"
#include "server/core/types.h"

namespace assay::core {

// What the planner makes of one queued run.
struct Placement {
  enum class Verdict {
    kPlaced,
    kLimited,  // its organisation has as many runs as it may
    kTooFew,   // no allocation has enough workers that match and are there
    kBehind,   // a run before it keeps workers that it could use
    kBusy,     // the workers that it could use are busy; it is next in line for them
    kChecked,  // its nodes are being checked, or are to be (unchecked, gang)
  };
  Verdict verdict = Verdict::kTooFew;
  RunId ahead;                         // kBehind: the first such run
  AllocationId allocation;             // kPlaced
  std::vector<std::string> workers;    // kPlaced: in rank order
  std::vector<std::string> unchecked;  // kChecked: workers whose check is to begin now
  std::vector<std::string> gang;       // kChecked: in rank order, whose fabric's check is to begin
  std::vector<std::string> set_nodes;  // of its set so far, in rank order; empty: none was placed
};

// Takes the queued runs one after the other. `state` and the others must outlive it.
class Planner {
 public:
  Planner(const State& state, const PresenceMap& presence, const Policy& policy);

  // What becomes of `run`; to be asked for each run of State::queued, in order.
  Placement Next(const Run& run);

  // False if none of the runs that follow can be placed.
  bool has_more() const { return free_count_ > 0 || !instances_.empty(); }

 private:
  // A worker that is there, ALIVE or SUSPECT.
  struct Slot {
    const Worker* worker;
    bool is_free = false;
    RunId keeper;  // the run that waits for it; none: nobody does
  };
  using Slots = std::vector<Slot*>;
  static bool IsUsable(const Slot* slot) { return slot->is_free && slot->keeper.is_none(); }

  // An allocation that could hold a gang.
  struct Candidate {
    AllocationId allocation;
    Slots gang;  // by rank: the nodes of the set; nullptr: one of `others`
    Slots others;
    int64_t known_count = 0;  // of `gang`, that are not nullptr
  };

  const std::vector<std::string>& NodesOfSet(SubmissionId set);
  int64_t NodesFor(const Run& run) const;
  std::vector<Candidate> CandidatesFor(const Run& run, const std::vector<std::string>& set_nodes);
  Slots Choose(const Submission& submission, const Candidate& candidate) const;
  Placement Take(const Run& run, AllocationId allocation, const Slots& gang);
  Placement TakeInstance(const Run& run, Placement* all);
  Placement Keep(const Run& run, const Slots& wanted);
  Slots CheckedFor(const Submission& submission, bool* is_any_running);
  Placement Check(const Run& run, const Slots& gang);

  const State& state_;
  const PresenceMap& presence_;
  const Policy& policy_;
  std::map<SubmissionId, std::vector<std::string>> set_nodes_;  // of those that were asked for
  std::map<AllocationId, std::vector<Slot>> slots_;             // of serving allocations; by name
  std::map<std::string, int32_t> active_;                       // runs by organisation
  size_t free_count_ = 0;                                       // neither busy nor kept
  // Of throughput sets that were placed: where the instances go that were not asked for yet.
  std::map<SubmissionId, Placement> instances_;
};

// RunAssigned for each run that can start now, PreflightStarted for each node that is to be
// checked, alone or with its gang, before one can.
std::vector<Event> Place(const State& state, const PresenceMap& presence, const Policy& policy,
                         int64_t now_us);

// What the best of the allocations has for a spec: that in which most workers match and are there.
struct Capacity {
  int32_t present_count = 0;  // ALIVE or SUSPECT, busy or not
  int32_t free_count = 0;     // of these
};
Capacity BestCapacity(const State& state, const PresenceMap& presence, const SubmissionSpec& spec,
                      SubmissionId submission);

// True if the worker has the labels and the backend that the spec asks for.
bool Matches(const Worker& worker, const SubmissionSpec& spec);

// True if a run of the submission may use the allocation. None: of one that is not submitted yet.
bool MayUse(const Allocation& allocation, SubmissionId submission);

// True if a run could be given to the worker at once.
bool IsFree(const Worker& worker, const PresenceMap& presence);

// Runs that each organisation has on workers now, and how many it may have; 0: any number.
std::map<std::string, int32_t> CountActiveRuns(const State& state);
int32_t RunLimit(const Policy& policy, const std::string& organization);

}  // namespace assay::core

#endif  // SERVER_CORE_PLANNER_H_
