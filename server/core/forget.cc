#include "server/core/forget.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace assay::core {
namespace {

// Of one event, which is a row of the log.
constexpr size_t kForgottenMax = 1000;

// Workers that runs name which have not ended.
std::set<std::string> WorkersInUse(const State& state) {
  std::set<std::string> workers;
  for (const RunId id : state.active)
    for (const RunNode& node : state.runs.at(id).nodes)
      workers.insert(node.worker);
  return workers;
}

// Events that forget the workers for which `is_over` holds and to which nothing refers.
template <typename Predicate>
std::vector<Event> ForgetWorkers(const State& state, Predicate is_over) {
  std::vector<Event> events;
  const std::set<std::string> in_use = WorkersInUse(state);
  for (const auto& [name, worker] : state.workers) {
    const bool is_pinned = worker.is_forgotten || !worker.run.is_none() ||
                           worker.is_drain_requested || worker.certificate_generation > 0 ||
                           in_use.contains(name);
    if (!is_pinned && is_over(worker)) events.push_back(WorkerForgotten{.worker = name});
  }
  return events;
}

bool IsUseless(const Token& token, int64_t since_us) {
  if (token.is_forgotten) return false;
  if (token.expires_at_us <= since_us) return true;
  // Earlier programs did not note when: such a one counts from when it was made.
  return token.is_revoked && std::max(token.revoked_at_us, token.created_at_us) <= since_us;
}

}  // namespace

std::vector<Event> ForgetEnded(const State& state) {
  const bool is_any =
      std::any_of(state.allocations.begin(), state.allocations.end(),
                  [](const auto& entry) { return entry.second.state == AllocationState::kEnded; });
  if (!is_any) return {};
  return ForgetWorkers(state, [&state](const Worker& worker) {
    const auto it = state.allocations.find(worker.allocation);
    return it != state.allocations.end() && it->second.state == AllocationState::kEnded;
  });
}

std::vector<Event> ForgetOld(const State& state, int64_t now_us) {
  const int64_t since_us = now_us - kRememberUs;
  std::vector<Event> events = ForgetWorkers(state, [since_us](const Worker& worker) {
    return (worker.state == WorkerState::kGone || worker.state == WorkerState::kLost) &&
           worker.state_since_us <= since_us && worker.operator_labels.empty();
  });
  TokensForgotten tokens;
  for (const auto& [id, token] : state.tokens) {
    if (!IsUseless(token, since_us)) continue;
    tokens.tokens.push_back(id);
    if (tokens.tokens.size() == kForgottenMax) events.push_back(std::exchange(tokens, {}));
  }
  if (!tokens.tokens.empty()) events.push_back(std::move(tokens));
  RequestsForgotten requests;
  for (const auto& [key, request] : state.requests) {
    if (request.at_us > since_us) continue;
    requests.requests.push_back(key);
    if (requests.requests.size() == kForgottenMax) events.push_back(std::exchange(requests, {}));
  }
  if (!requests.requests.empty()) events.push_back(std::move(requests));
  return events;
}

}  // namespace assay::core
