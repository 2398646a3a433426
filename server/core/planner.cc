#include "server/core/planner.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "server/core/cache_placement.h"
#include "server/core/fabric.h"
#include "server/core/labels.h"
#include "server/core/node_checks.h"

namespace assay::core {
namespace {

bool IsPresent(const Worker& worker) {
  return worker.state == WorkerState::kAlive || worker.state == WorkerState::kSuspect;
}

// Nodes of one kind are equal to a set, and to any other run: it may have either.
std::string KindOf(const Submission& submission, const Worker& worker) {
  const WorkerDescription& description = worker.description;
  std::string kind =
      absl::StrCat(IsChecked(submission, worker), "; ", NodeType(description.capabilities), "; ",
                   absl::StrJoin(description.capabilities.backends, ","));
  for (const auto& [label, value] : LabelsOf(worker))
    if (label != kNodeLabel && label != kAllocationLabel)
      absl::StrAppend(&kind, "; ", label, "=", value);
  return kind;
}

}  // namespace

bool Matches(const Worker& worker, const SubmissionSpec& spec) {
  const std::vector<std::string>& backends = worker.description.capabilities.backends;
  const std::string& backend = BackendOf(spec.workload);
  if (!backend.empty() && !backends.empty() &&
      std::find(backends.begin(), backends.end(), backend) == backends.end())
    return false;
  return std::all_of(spec.worker_labels.begin(), spec.worker_labels.end(),
                     [&worker](const auto& wanted) {
                       const std::string* const value = FindLabel(worker, wanted.first);
                       return value != nullptr && *value == wanted.second;
                     });
}

bool MayUse(const Allocation& allocation, SubmissionId submission) {
  return IsServing(allocation.state) &&
         (allocation.spec.submission.is_none() || allocation.spec.submission == submission);
}

bool IsFree(const Worker& worker, const PresenceMap& presence) {
  if (worker.state != WorkerState::kAlive || !worker.run.is_none() ||
      FindRunning(worker) != nullptr)
    return false;
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
    : state_(state), presence_(presence), policy_(policy), active_(CountActiveRuns(state)) {
  for (const auto& [name, worker] : state.workers) {
    const auto it = state.allocations.find(worker.allocation);
    if (!IsPresent(worker) || it == state.allocations.end() || !IsServing(it->second.state))
      continue;
    const bool is_free = IsFree(worker, presence);
    slots_[it->first].push_back({.worker = &worker, .is_free = is_free});
    if (is_free) ++free_count_;
  }
}

const std::vector<std::string>& Planner::NodesOfSet(SubmissionId set) {
  const auto [it, is_new] = set_nodes_.try_emplace(set);
  const Submission& submission = state_.submissions.at(set);
  if (!is_new || IsThroughput(submission.spec)) return it->second;
  const Run* last = nullptr;
  for (const RunId id : submission.runs) {
    const Run& run = state_.runs.at(id);
    const bool is_later = last == nullptr || run.assigned_at_us >= last->assigned_at_us;
    if (!run.nodes.empty() && is_later) last = &run;
  }
  if (last != nullptr) it->second = NodeNames(*last);
  return it->second;
}

// Of the run's gang, or of all instances of its set that wait.
int64_t Planner::NodesFor(const Run& run) const {
  const Submission& submission = state_.submissions.at(run.submission);
  if (!IsThroughput(submission.spec)) return submission.spec.node_count;
  const auto queued =
      std::count_if(submission.runs.begin(), submission.runs.end(),
                    [this](RunId id) { return state_.runs.at(id).state == RunState::kQueued; });
  return submission.spec.node_count * queued;
}

// Only the one with most of the set's nodes, where there is any. Nodes that have been checked for
// the set come first.
std::vector<Planner::Candidate> Planner::CandidatesFor(const Run& run,
                                                       const std::vector<std::string>& set_nodes) {
  const Submission& submission = state_.submissions.at(run.submission);
  const SubmissionSpec& spec = submission.spec;
  const int64_t node_count = NodesFor(run);
  std::multimap<absl::string_view, size_t> all_ranks;
  for (size_t rank = 0; rank < set_nodes.size(); ++rank)
    all_ranks.emplace(set_nodes[rank], rank);
  std::vector<Candidate> candidates;
  for (auto& [id, slots] : slots_) {
    if (!MayUse(state_.allocations.at(id), run.submission)) continue;
    auto ranks = all_ranks;
    Candidate candidate{
        .allocation = id, .gang = Slots(static_cast<size_t>(node_count), nullptr), .others = {}};
    for (Slot& slot : slots) {
      if (!Matches(*slot.worker, spec)) continue;
      const auto rank = ranks.find(NodeName(*slot.worker));
      if (rank == ranks.end()) {
        candidate.others.push_back(&slot);
      } else {
        candidate.gang[rank->second] = &slot;
        ++candidate.known_count;
        ranks.erase(rank);
      }
    }
    if (candidate.known_count + std::ssize(candidate.others) < node_count) continue;
    std::stable_partition(
        candidate.others.begin(), candidate.others.end(),
        [&submission](const Slot* slot) { return IsChecked(submission, *slot->worker); });
    candidates.push_back(std::move(candidate));
  }
  const auto best = std::max_element(
      candidates.begin(), candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.known_count < b.known_count; });
  if (best != candidates.end() && best->known_count > 0) return {std::move(*best)};
  return candidates;
}

Placement Planner::Next(const Run& run) {
  const SubmissionSpec& spec = state_.submissions.at(run.submission).spec;
  if (const auto it = instances_.find(run.submission); it != instances_.end())
    return TakeInstance(run, &it->second);
  const int32_t limit = RunLimit(policy_, spec.organization);
  if (limit > 0 && active_[spec.organization] >= limit)
    return {.verdict = Placement::Verdict::kLimited};
  const std::vector<std::string> set_nodes = NodesOfSet(run.submission);
  bool is_any_running = false;
  if (const Slots checked = CheckedFor(state_.submissions.at(run.submission), &is_any_running);
      is_any_running) {
    Keep(run, checked);
    return {.verdict = Placement::Verdict::kChecked, .set_nodes = set_nodes};
  }
  Placement placement;
  Slots wanted;
  for (const Candidate& candidate : CandidatesFor(run, set_nodes)) {
    Slots gang = candidate.gang;
    const Slots chosen = Choose(state_.submissions.at(run.submission), candidate);
    auto next = chosen.begin();
    for (Slot*& slot : gang)
      if (slot == nullptr && next != chosen.end()) slot = *next++;
    if (std::all_of(gang.begin(), gang.end(),
                    [](const Slot* slot) { return slot != nullptr && IsUsable(slot); })) {
      placement = Check(run, gang);
      if (placement.unchecked.empty() && placement.gang.empty())
        placement = Take(run, candidate.allocation, gang);
      break;
    }
    std::copy_if(candidate.gang.begin(), candidate.gang.end(), std::back_inserter(wanted),
                 [](const Slot* slot) { return slot != nullptr; });
    if (candidate.known_count < std::ssize(gang))
      wanted.insert(wanted.end(), candidate.others.begin(), candidate.others.end());
  }
  if (placement.verdict == Placement::Verdict::kTooFew) placement = Keep(run, wanted);
  placement.set_nodes = set_nodes;
  return placement;
}

// For the places in the gang that the set's nodes do not fill, as far as there are any: the first
// of the others that can be used, but of each kind first those that have the run's dataset. In
// their order, so that ranks follow names.
Planner::Slots Planner::Choose(const Submission& submission, const Candidate& candidate) const {
  Slots usable;
  std::copy_if(candidate.others.begin(), candidate.others.end(), std::back_inserter(usable),
               IsUsable);
  const auto places = static_cast<size_t>(std::ssize(candidate.gang) - candidate.known_count);
  if (usable.size() <= places) return usable;
  const auto end = usable.begin() + static_cast<ptrdiff_t>(places);
  Slots chosen(usable.begin(), end);
  const std::string digest = DigestToStartFrom(state_, submission);
  const auto is_cached = [&](const Slot* slot) {
    return IsCached(presence_, slot->worker->name, digest);
  };
  if (digest.empty() || std::all_of(chosen.begin(), chosen.end(), is_cached) ||
      std::none_of(end, usable.end(), is_cached))
    return chosen;
  std::map<std::string, int64_t> left;
  for (const Slot* const slot : chosen)
    ++left[KindOf(submission, *slot->worker)];
  Slots preferred = usable;
  std::stable_partition(preferred.begin(), preferred.end(), is_cached);
  std::set<const Slot*> taken;
  for (const Slot* const slot : preferred)
    if (left[KindOf(submission, *slot->worker)]-- > 0) taken.insert(slot);
  std::erase_if(usable, [&taken](const Slot* slot) { return !taken.contains(slot); });
  return usable;
}

// The nodes that have been checked for the set or are at it; whether any is at it.
Planner::Slots Planner::CheckedFor(const Submission& submission, bool* is_any_running) {
  Slots checked;
  for (auto& [id, slots] : slots_) {
    if (!MayUse(state_.allocations.at(id), submission.id)) continue;
    for (Slot& slot : slots) {
      const Preflight* const running = FindRunning(*slot.worker);
      const bool is_running = running != nullptr && running->submission == submission.id;
      *is_any_running = *is_any_running || is_running;
      if (is_running || IsChecked(submission, *slot.worker)) checked.push_back(&slot);
    }
  }
  return checked;
}

// Keeps the gang if any of it is to be checked first, or its fabric.
Placement Planner::Check(const Run& run, const Slots& gang) {
  const Submission& submission = state_.submissions.at(run.submission);
  Placement placement{.verdict = Placement::Verdict::kChecked};
  const PreflightPolicy* const wanted = FindPreflight(policy_, submission.spec);
  if (wanted == nullptr) return placement;
  std::vector<std::string> nodes;
  for (const Slot* const slot : gang) {
    nodes.push_back(NodeName(*slot->worker));
    if (!ChecksOf(*wanted, /*is_fabric=*/false).empty() && !IsChecked(submission, *slot->worker))
      placement.unchecked.push_back(slot->worker->name);
  }
  if (placement.unchecked.empty() && NeedsFabricCheck(*wanted, submission, nodes))
    for (const Slot* const slot : gang)
      placement.gang.push_back(slot->worker->name);
  if (!placement.unchecked.empty() || !placement.gang.empty()) Keep(run, gang);
  return placement;
}

Placement Planner::Take(const Run& run, AllocationId allocation, const Slots& gang) {
  Placement placement{.verdict = Placement::Verdict::kPlaced, .allocation = allocation};
  std::vector<std::string>& set_nodes = set_nodes_[run.submission];
  set_nodes.clear();
  for (Slot* const slot : gang) {
    slot->is_free = false;
    placement.workers.push_back(slot->worker->name);
    set_nodes.push_back(NodeName(*slot->worker));
    --free_count_;
  }
  if (IsThroughput(state_.submissions.at(run.submission).spec))
    return TakeInstance(run,
                        &instances_.emplace(run.submission, std::move(placement)).first->second);
  ++active_[state_.submissions.at(run.submission).spec.organization];
  return placement;
}

// The next of those that were placed together. They count for their organisation's limit, but do
// not stop at it half-way.
Placement Planner::TakeInstance(const Run& run, Placement* all) {
  const SubmissionSpec& spec = state_.submissions.at(run.submission).spec;
  ++active_[spec.organization];
  Placement placement{.verdict = Placement::Verdict::kPlaced, .allocation = all->allocation};
  const auto end = all->workers.begin() + spec.node_count;
  placement.workers.assign(all->workers.begin(), end);
  all->workers.erase(all->workers.begin(), end);
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

std::vector<Event> Place(const State& state, const PresenceMap& presence, const Policy& policy,
                         int64_t now_us) {
  if (state.queued.empty()) return {};
  Planner planner(state, presence, policy);
  std::vector<Event> events;
  for (const RunId id : state.queued) {
    if (!planner.has_more()) break;
    const Run& run = state.runs.at(id);
    Placement placement = planner.Next(run);
    for (const std::string& worker : placement.unchecked)
      events.push_back(StartPreflight(state, run.submission, worker, policy, now_us));
    if (!placement.gang.empty())
      StartFabricCheck(state, run.submission, placement.gang, policy, now_us, &events);
    if (placement.verdict != Placement::Verdict::kPlaced) continue;
    std::vector<std::string> cached =
        CachedAmong(state, presence, state.submissions.at(run.submission), placement.workers);
    events.push_back(RunAssigned{.run = id,
                                 .generation = run.generation + 1,
                                 .workers = std::move(placement.workers),
                                 .allocation = placement.allocation,
                                 .cached_workers = std::move(cached)});
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
