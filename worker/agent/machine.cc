#include "worker/agent/machine.h"

#include <algorithm>
#include <utility>

namespace assay::agent {
namespace {

bool IsUploaded(const HeldRun& run) {
  return std::all_of(run.artifacts.begin(), run.artifacts.end(),
                     [&run](const std::string& name) { return run.uploaded.count(name) > 0; });
}

bool IsDelivered(const HeldRun& run) {
  if (!run.exit.has_value() || !run.is_spool_complete) return false;
  return run.is_refused || (run.acked_seq >= run.spooled_seq && IsUploaded(run));
}

// Its step has ended, or will without being asked again.
bool IsToEnd(const HeldRun& run) {
  return run.exit.has_value() || run.is_stopping || run.is_stop_wanted;
}

// The machine starts no step while another has not ended: at most one run matches.
const std::pair<const RunKey, HeldRun>* FindExecuting(const MachineState& state) {
  for (const auto& entry : state.runs)
    if (!entry.second.exit.has_value()) return &entry;
  return nullptr;
}

HeldRun* Find(const RunKey& key, MachineState* state) {
  const auto it = state->runs.find(key);
  return it == state->runs.end() ? nullptr : &it->second;
}

void Report(MachineState* state, std::vector<Action>* actions) {
  state->reported = StatusOf(*state);
  actions->push_back(Synchronize{state->reported});
}

// Reports only what the coordinator has not been told.
void ReportChange(MachineState* state, std::vector<Action>* actions) {
  if (StatusOf(*state) != state->reported) Report(state, actions);
}

void Forget(const RunKey& key, MachineState* state, std::vector<Action>* actions) {
  state->runs.erase(key);
  actions->push_back(ForgetRun{key});
}

void Deliver(const RunKey& key, const HeldRun& run, std::vector<Action>* actions) {
  if (run.is_refused) return;
  if (run.acked_seq < run.spooled_seq)
    actions->push_back(SendEvents{key, run.acked_seq + 1, run.spooled_seq});
  if (!run.exit.has_value() || !run.is_spool_complete) return;
  std::vector<std::string> missing;
  for (const std::string& name : run.artifacts)
    if (run.uploaded.count(name) == 0) missing.push_back(name);
  if (!missing.empty()) actions->push_back(UploadArtifacts{key, std::move(missing)});
}

// Stops what executes, unless it is `wanted`. True if nothing but `wanted` executes.
bool StopOthers(const std::optional<RunKey>& wanted, MachineState* state,
                std::vector<Action>* actions) {
  const auto* executing = FindExecuting(*state);
  if (executing == nullptr || (wanted.has_value() && executing->first == *wanted)) return true;
  const RunKey key = executing->first;
  state->runs.at(key).is_stop_wanted = true;
  actions->push_back(StopStep{key});
  return false;
}

void Execute(const Desired& desired, MachineState* state, std::vector<Action>* actions) {
  const RunKey& key = desired.key;
  HeldRun* held = Find(key, state);
  const auto fence = state->fences.find(key.run);
  const bool is_stale = fence != state->fences.end() && key.generation <= fence->second;
  if (held == nullptr && (is_stale || state->is_leaving)) return;
  if (!StopOthers(key, state, actions)) return;
  if (held == nullptr) {
    held = &state->runs[key];
    state->fences[key.run] = key.generation;
  }
  if (!held->is_started && !held->exit.has_value() && !held->is_stop_wanted)
    actions->push_back(StartStep{key, desired.spec});
  if (!desired.may_start || held->has_leave_to_start) return;
  held->has_leave_to_start = true;
  actions->push_back(GiveLeave{key});
}

// One that is done stays reported until the coordinator wants something else.
void DropCheck(MachineState* state, std::vector<Action>* actions) {
  if (state->check != 0 && !state->check_result.has_value()) actions->push_back(StopCheck{});
  state->check = 0;
  state->check_result.reset();
}

void Check(const Desired& desired, MachineState* state, std::vector<Action>* actions) {
  if (!StopOthers(std::nullopt, state, actions) || state->is_leaving ||
      state->check == desired.key.generation)
    return;
  DropCheck(state, actions);
  state->check = desired.key.generation;
  actions->push_back(StartCheck{state->check, desired.spec});
}

void StopCache(MachineState* state, std::vector<Action>* actions) {
  if (state->is_caching) actions->push_back(StopCaching{});
  state->is_caching = false;
}

// Before what the order brings: a run or a check finds the node without a process of the cache.
void Cache(const Desired& desired, MachineState* state, std::vector<Action>* actions) {
  if (desired.cache_order != state->cache_order) {
    StopCache(state, actions);
    state->cache_order = desired.cache_order;
    state->is_cache_done = false;
  }
  if (state->cache_order == 0 || state->is_cache_done) return;
  if (desired.order != Order::kIdle || !state->runs.empty() || state->is_leaving) {
    StopCache(state, actions);
  } else if (!state->is_caching) {
    state->is_caching = true;
    actions->push_back(StartCaching{state->cache_order, desired.cache_spec});
  }
}

void Obey(const Desired& desired, MachineState* state, std::vector<Action>* actions) {
  if (desired.order == Order::kCheck) return Check(desired, state, actions);
  DropCheck(state, actions);
  HeldRun* held = Find(desired.key, state);
  switch (desired.order) {
    case Order::kIdle:
      StopOthers(std::nullopt, state, actions);
      return;
    case Order::kExecute:
      Execute(desired, state, actions);
      return;
    case Order::kStop:
      // Of another generation than ours, or of nothing: then nothing is to run here.
      StopOthers(std::nullopt, state, actions);
      return;
    case Order::kForget:
      if (held == nullptr) return;
      if (held->exit.has_value()) {
        Forget(desired.key, state, actions);
        return;
      }
      held->is_stop_wanted = true;
      held->is_forget_wanted = true;
      actions->push_back(StopStep{desired.key});
      return;
    case Order::kCheck:
      return;  // see above
  }
}

// One overload per input.
class Stepper {
 public:
  Stepper(MachineState* state, std::vector<Action>* actions) : state_(state), actions_(actions) {}

  void operator()(const Tick&) const {
    for (const auto& [key, run] : state_->runs) {
      if (run.is_stop_wanted && !run.exit.has_value()) actions_->push_back(StopStep{key});
      if (run.has_leave_to_start && !run.exit.has_value()) actions_->push_back(GiveLeave{key});
      Deliver(key, run, actions_);
    }
  }
  void operator()(const SyncReply& reply) const {
    Cache(reply.desired, state_, actions_);
    Obey(reply.desired, state_, actions_);
    Report(state_, actions_);
  }
  void operator()(const SyncFailed&) const { Report(state_, actions_); }
  void operator()(const RunObserved& seen) const {
    HeldRun* run = Find(seen.key, state_);
    if (run == nullptr) return;
    Merge(seen, run);
    if (run->exit.has_value() && run->is_forget_wanted) {
      Forget(seen.key, state_, actions_);
    } else {
      Deliver(seen.key, *run, actions_);
    }
    ReportChange(state_, actions_);
  }
  void operator()(const EventsAcked& ack) const {
    HeldRun* run = Find(ack.key, state_);
    if (run == nullptr) return;
    run->acked_seq = std::max(run->acked_seq, ack.durable_seq);
    ReportChange(state_, actions_);
  }
  void operator()(const ArtifactUploaded& upload) const {
    HeldRun* run = Find(upload.key, state_);
    if (run == nullptr) return;
    run->uploaded[upload.file.file_name] = upload.file;
    ReportChange(state_, actions_);
  }
  void operator()(const DeliveryRefused& refusal) const {
    HeldRun* run = Find(refusal.key, state_);
    if (run == nullptr) return;
    run->is_refused = true;
    ReportChange(state_, actions_);
  }
  void operator()(const CheckEnded& end) const {
    if (end.number != state_->check || state_->check_result.has_value()) return;
    state_->check_result = end.result;
    ReportChange(state_, actions_);
  }
  void operator()(const CacheSeen& seen) const {
    state_->cache_report = seen.report;
    if (seen.is_done && seen.number != 0 && seen.number == state_->cache_order) {
      state_->is_cache_done = true;
      state_->is_caching = false;
    }
    ReportChange(state_, actions_);
  }
  void operator()(const LeaveRequested&) const {
    state_->is_leaving = true;
    StopCache(state_, actions_);
    DropCheck(state_, actions_);
    ReportChange(state_, actions_);
  }

 private:
  static void Merge(const RunObserved& seen, HeldRun* run) {
    run->is_started = run->is_started || seen.is_started;
    run->is_stopping = run->is_stopping || seen.is_stopping;
    run->is_ready = run->is_ready || seen.is_ready;
    run->spooled_seq = std::max(run->spooled_seq, seen.spooled_seq);
    if (!run->exit.has_value()) run->exit = seen.exit;
    if (!seen.exit.has_value() || !seen.is_spool_complete) return;
    run->is_spool_complete = true;
    run->artifacts = seen.artifacts;
  }

  MachineState* const state_;
  std::vector<Action>* const actions_;
};

}  // namespace

MachineState Restore(std::map<RunKey, HeldRun> runs, std::map<std::string, int64_t> fences) {
  MachineState state;
  state.runs = std::move(runs);
  state.fences = std::move(fences);
  for (const auto& [key, run] : state.runs) {
    int64_t& fence = state.fences[key.run];
    fence = std::max(fence, key.generation);
  }
  return state;
}

Status StatusOf(const MachineState& state) {
  Status status;
  status.is_leaving = state.is_leaving;
  status.check = state.check;
  status.check_result = state.check_result;
  status.cache_order = state.cache_order;
  status.is_cache_done = state.is_cache_done;
  status.cache_report = state.cache_report;
  if (const auto* executing = FindExecuting(state); executing != nullptr) {
    status.phase = Phase::kExecuting;
    status.key = executing->first;
    status.is_ready = executing->second.is_ready;
    status.has_leave_to_start = executing->second.has_leave_to_start;
    return status;
  }
  for (const auto& [key, run] : state.runs) {
    const bool is_delivered = IsDelivered(run);
    if (status.phase != Phase::kIdle && !is_delivered) continue;
    status.phase = is_delivered ? Phase::kFinished : Phase::kExecuting;
    status.key = key;
    if (!is_delivered) continue;
    status.exit = *run.exit;
    for (const std::string& name : run.artifacts) {
      const auto it = run.uploaded.find(name);
      if (it != run.uploaded.end()) status.artifacts.push_back(it->second);
    }
    return status;
  }
  return status;
}

bool IsExecuting(const MachineState& state) {
  const auto* executing = FindExecuting(state);
  return executing != nullptr && !IsToEnd(executing->second);
}

bool IsEnding(const MachineState& state) {
  return std::any_of(state.runs.begin(), state.runs.end(), [](const auto& entry) {
    return IsToEnd(entry.second) && !IsDelivered(entry.second);
  });
}

std::vector<Action> Advance(const Input& input, MachineState* state) {
  std::vector<Action> actions;
  std::visit(Stepper(state, &actions), input);
  return actions;
}

}  // namespace assay::agent
