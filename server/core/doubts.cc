#include "server/core/doubts.h"

#include <algorithm>

namespace assay::core {
namespace {

// True if a rank or step of the run was stopped and none has failed by itself.
bool IsStopped(const Run& run) {
  bool is_stopped = false;
  for (const RunNode& node : run.nodes) {
    if (node.phase != NodePhase::kFinished || node.exit_code == 0) continue;
    if (IsTrainerFailure(node.exit_code)) return false;
    is_stopped = true;
  }
  return is_stopped;
}

bool HasAnyLeft(const State& state, RunId run) {
  const auto found = state.runs.find(run);
  if (found == state.runs.end()) return false;
  const std::vector<RunNode>& nodes = found->second.nodes;
  return std::any_of(nodes.begin(), nodes.end(), [&state](const RunNode& node) {
    const auto it = state.workers.find(node.worker);
    return it == state.workers.end() || it->second.state == WorkerState::kGone;
  });
}

}  // namespace

std::vector<AllocationId> Doubts::Watch(const State& state, const LauncherStarted& launcher,
                                        int64_t now_us) {
  std::erase_if(doubts_, [&state](const auto& entry) {
    const auto it = state.runs.find(entry.first);
    return it == state.runs.end() || !state.active.contains(entry.first) ||
           it->second.allocation != entry.second.allocation;
  });
  std::vector<AllocationId> asked;
  if (!launcher.is_per_submission) return asked;
  for (auto& [run, doubt] : doubts_) {
    if (doubt.ask_again_us == 0 || now_us < doubt.ask_again_us) continue;
    doubt.ask_again_us = 0;
    asked.push_back(doubt.allocation);
  }
  for (const RunId id : state.active) {
    const Run& run = state.runs.at(id);
    if (run.state == RunState::kUploading || doubts_.contains(id) || !IsStopped(run)) continue;
    const auto it = state.allocations.find(run.allocation);
    if (it == state.allocations.end() || it->second.spec.launcher != launcher.launcher ||
        !IsServing(it->second.state))
      continue;
    doubts_[id] = {run.allocation, now_us + kDoubtUs};
    asked.push_back(run.allocation);
  }
  return asked;
}

void Doubts::Answer(const State& state, AllocationId allocation, int64_t now_us) {
  for (auto& [run, doubt] : doubts_) {
    if (doubt.allocation != allocation || now_us >= doubt.end_us) continue;
    const bool is_fresh = now_us < doubt.end_us - kDoubtUs + kDoubtMinUs;
    if (is_fresh || HasAnyLeft(state, run)) {
      doubt.ask_again_us = now_us + kAskAgainUs;
    } else {
      doubt.end_us = 0;
    }
  }
}

bool Doubts::Holds(RunId run, int64_t now_us) const {
  const auto it = doubts_.find(run);
  return it != doubts_.end() && now_us < it->second.end_us;
}

std::set<AllocationId> Doubts::Open(int64_t now_us) const {
  std::set<AllocationId> open;
  for (const auto& [run, doubt] : doubts_)
    if (now_us < doubt.end_us) open.insert(doubt.allocation);
  return open;
}

std::optional<int64_t> Doubts::NextEndUs(int64_t now_us) const {
  std::optional<int64_t> next;
  for (const auto& [run, doubt] : doubts_)
    for (const int64_t at_us : {doubt.end_us, doubt.ask_again_us})
      if (at_us > now_us) next = std::min(next.value_or(at_us), at_us);
  return next;
}

}  // namespace assay::core
