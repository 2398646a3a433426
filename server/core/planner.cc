#include "server/core/planner.h"

#include <algorithm>
#include <utility>

namespace assay::core {
namespace {

bool IsPresent(const Worker& worker) {
  return worker.state == WorkerState::kAlive || worker.state == WorkerState::kSuspect;
}

}  // namespace

bool Matches(const Worker& worker, const SubmissionSpec& spec) {
  const std::vector<std::string>& backends = worker.description.capabilities.backends;
  const std::string& backend = BackendOf(spec.workload);
  if (!backend.empty() && !backends.empty() &&
      std::find(backends.begin(), backends.end(), backend) == backends.end())
    return false;
  const auto& labels = worker.description.labels;
  return std::all_of(spec.worker_labels.begin(), spec.worker_labels.end(),
                     [&labels](const auto& wanted) {
                       const auto it = labels.find(wanted.first);
                       return it != labels.end() && it->second == wanted.second;
                     });
}

bool MayUse(const Allocation& allocation, SubmissionId submission) {
  return IsServing(allocation.state) &&
         (allocation.spec.submission.is_none() || allocation.spec.submission == submission);
}

bool IsFree(const Worker& worker, const PresenceMap& presence) {
  if (worker.state != WorkerState::kAlive || !worker.run.is_none()) return false;
  const auto it = presence.find(worker.name);
  return it != presence.end() && it->second.is_reported &&
         it->second.report.phase == WorkerPhase::kIdle;
}

std::map<std::string, int32_t> CountActiveRuns(const State& state) {
  std::map<std::string, int32_t> counts;
  for (const RunId id : state.active)
    ++counts[state.submissions.at(state.runs.at(id).submission).spec.organization];
  return counts;
}

int32_t RunLimit(const Policy& policy, const std::string& organization) {
  const auto it = policy.organization_run_limits.find(organization);
  return it == policy.organization_run_limits.end() ? policy.organization_run_limit : it->second;
}

Planner::Planner(const State& state, const PresenceMap& presence, const Policy& policy)
    : state_(state), policy_(policy), active_(CountActiveRuns(state)) {
  for (const auto& [name, worker] : state.workers) {
    const auto it = state.allocations.find(worker.allocation);
    if (!IsPresent(worker) || it == state.allocations.end() || !IsServing(it->second.state))
      continue;
    const bool is_free = IsFree(worker, presence);
    slots_[it->first].push_back({.worker = &worker, .is_free = is_free});
    if (is_free) ++free_count_;
  }
}

Placement Planner::Next(const Run& run) {
  const SubmissionSpec& spec = state_.submissions.at(run.submission).spec;
  const int32_t limit = RunLimit(policy_, spec.organization);
  if (limit > 0 && active_[spec.organization] >= limit)
    return {.verdict = Placement::Verdict::kLimited};
  Slots wanted;  // in all allocations that could hold the gang
  for (auto& [id, slots] : slots_) {
    if (!MayUse(state_.allocations.at(id), run.submission)) continue;
    Slots matching;
    Slots usable;
    for (Slot& slot : slots) {
      if (!Matches(*slot.worker, spec)) continue;
      matching.push_back(&slot);
      if (slot.is_free && slot.keeper.is_none()) usable.push_back(&slot);
    }
    if (std::ssize(matching) < spec.node_count) continue;
    if (std::ssize(usable) >= spec.node_count) return Take(run, id, usable);
    wanted.insert(wanted.end(), matching.begin(), matching.end());
  }
  return Keep(run, wanted);
}

Placement Planner::Take(const Run& run, AllocationId allocation, const Slots& usable) {
  const SubmissionSpec& spec = state_.submissions.at(run.submission).spec;
  Placement placement{.verdict = Placement::Verdict::kPlaced, .allocation = allocation};
  for (size_t i = 0; i < static_cast<size_t>(spec.node_count); ++i) {
    usable[i]->is_free = false;
    placement.workers.push_back(usable[i]->worker->name);
    --free_count_;
  }
  ++active_[spec.organization];
  return placement;
}

Placement Planner::Keep(const Run& run, const Slots& wanted) {
  if (wanted.empty()) return {.verdict = Placement::Verdict::kTooFew};
  Placement placement{.verdict = Placement::Verdict::kBusy};
  for (Slot* const slot : wanted) {
    if (slot->keeper.is_none()) {
      slot->keeper = run.id;
      if (slot->is_free) --free_count_;
    } else if (placement.ahead.is_none() || slot->keeper < placement.ahead) {
      placement.verdict = Placement::Verdict::kBehind;
      placement.ahead = slot->keeper;
    }
  }
  return placement;
}

std::vector<Event> Place(const State& state, const PresenceMap& presence, const Policy& policy) {
  if (state.queued.empty()) return {};
  Planner planner(state, presence, policy);
  std::vector<Event> events;
  for (const RunId id : state.queued) {
    if (!planner.has_free()) break;
    const Run& run = state.runs.at(id);
    Placement placement = planner.Next(run);
    if (placement.verdict != Placement::Verdict::kPlaced) continue;
    events.push_back(RunAssigned{.run = id,
                                 .generation = run.generation + 1,
                                 .workers = std::move(placement.workers),
                                 .allocation = placement.allocation});
  }
  return events;
}

Capacity BestCapacity(const State& state, const PresenceMap& presence, const SubmissionSpec& spec,
                      SubmissionId submission) {
  std::map<AllocationId, Capacity> capacities;
  for (const auto& [name, worker] : state.workers) {
    const auto it = state.allocations.find(worker.allocation);
    if (!IsPresent(worker) || it == state.allocations.end() || !MayUse(it->second, submission) ||
        !Matches(worker, spec))
      continue;
    Capacity& capacity = capacities[it->first];
    ++capacity.present_count;
    if (IsFree(worker, presence)) ++capacity.free_count;
  }
  Capacity best;
  for (const auto& [id, capacity] : capacities)
    if (capacity.present_count > best.present_count) best = capacity;
  return best;
}

}  // namespace assay::core
