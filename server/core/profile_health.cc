#include "server/core/profile_health.h"

#include <algorithm>
#include <variant>

namespace assay::core {

void ProfileHealth::Note(const RecordedEvent& record, const State& state) {
  if (const auto* active = std::get_if<AllocationActivated>(&record.event); active != nullptr) {
    failures_.erase(state.allocations.at(active->allocation).spec.profile);
    return;
  }
  const auto* ended = std::get_if<AllocationEnded>(&record.event);
  if (ended == nullptr || ended->submission.is_none()) return;
  const AllocationSpec& spec = state.allocations.at(ended->allocation).spec;
  // That the nodes of a set do not come says nothing of others.
  if (!spec.wanted_hosts.empty()) return;
  Failures& failures = failures_[spec.profile];
  ++failures.count;
  failures.last = ended->allocation;
  failures.reason = ended->reason;
  failures.last_at_us = record.at_us;
}

const ProfileHealth::Failures* ProfileHealth::FindPause(const std::string& profile,
                                                        int64_t now_us) const {
  const auto it = failures_.find(profile);
  const bool is_paused = it != failures_.end() && it->second.count >= kProfileFailureCountMax &&
                         now_us < it->second.last_at_us + kProfilePauseUs;
  return is_paused ? &it->second : nullptr;
}

bool ProfileHealth::IsOnTrial(const std::string& profile) const {
  const auto it = failures_.find(profile);
  return it != failures_.end() && it->second.count >= kProfileFailureCountMax;
}

std::optional<int64_t> ProfileHealth::NextEndUs(int64_t now_us) const {
  std::optional<int64_t> next;
  for (const auto& [profile, failures] : failures_) {
    const int64_t end_us = failures.last_at_us + kProfilePauseUs;
    if (FindPause(profile, now_us) != nullptr) next = std::min(next.value_or(end_us), end_us);
  }
  return next;
}

}  // namespace assay::core
