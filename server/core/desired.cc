#include "server/core/desired.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "common/sha256.h"
#include "server/core/cache_orders.h"
#include "server/core/fabric.h"
#include "server/core/node_checks.h"

namespace assay::core {
namespace {

// What programs must know to find each other; the native trainer asks its rendezvous.
void AddHosts(const State& state, const Run& run, RunOrder* order) {
  for (const RunNode& node : run.nodes) {
    const WorkerDescription& description = state.workers.at(node.worker).description;
    const Capabilities& capabilities = description.capabilities;
    if (const auto label = description.labels.find(std::string(kNodeLabel));
        label != description.labels.end())
      order->node_names.push_back(label->second);
    const std::string& address = capabilities.rendezvous_address;
    if (order->hosts.empty()) order->program_port = capabilities.program_port;
    order->hosts.push_back(address.substr(0, address.rfind(':')));
  }
  if (order->node_names.size() != run.nodes.size()) order->node_names.clear();
}

// So that a replacement computes as the run did in whose place it is: of the newest failed run
// before it that has left its choices.
std::optional<ArtifactRef> EnginesFor(const State& state, const Submission& submission,
                                      const Run& run) {
  if (run.number <= submission.spec.run_count) return std::nullopt;  // it replaces none
  for (auto id = submission.runs.rbegin(); id != submission.runs.rend(); ++id) {
    const Run& other = state.runs.at(*id);
    if (other.number >= run.number || other.state != RunState::kFailed) continue;
    for (const ArtifactRef& artifact : other.artifacts)
      if (artifact.file_name == kEnginesFileName) return artifact;
  }
  return std::nullopt;
}

RunOrder MakeOrder(const State& state, const Run& run, const Worker& worker,
                   const std::string& secret) {
  const Submission& submission = state.submissions.at(run.submission);
  RunOrder order;
  order.submission = submission.id;
  order.spec = submission.spec;
  order.rules = submission.rules;
  // A dataset in use cannot be removed.
  order.dataset = state.datasets.at(submission.spec.dataset);
  order.run_number = run.number;
  order.seed = run.seed;
  for (size_t rank = 0; rank < run.nodes.size(); ++rank)
    if (run.nodes[rank].worker == worker.name) order.node_rank = static_cast<int32_t>(rank);
  order.rendezvous_address =
      state.workers.at(run.nodes.front().worker).description.capabilities.rendezvous_address;
  order.rendezvous_token = RendezvousToken(secret, run.id, run.generation);
  if (const auto passed = state.passed.find({submission.id, NodeName(worker)});
      passed != state.passed.end())
    order.preflight = passed->second;
  if (order.node_rank == 0) order.engines = EnginesFor(state, submission, run);
  if (std::holds_alternative<CommandWorkload>(order.spec.workload)) AddHosts(state, run, &order);
  return order;
}

bool MayStart(const State& state, const PresenceMap& presence, const Run& run) {
  const Submission& submission = state.submissions.at(run.submission);
  return IsThroughput(submission.spec) && AreInstancesReady(state, presence, submission);
}

}  // namespace

std::string RendezvousToken(const std::string& secret, RunId run, int64_t generation) {
  return Sha256Hex(absl::StrCat(secret, "\n", run.ToString(), "\n", generation));
}

bool AreInstancesReady(const State& state, const PresenceMap& presence,
                       const Submission& submission) {
  return std::all_of(submission.runs.begin(), submission.runs.end(), [&](RunId id) {
    const Run& run = state.runs.at(id);
    if (IsTerminal(run.state) || run.state == RunState::kUploading) return true;
    return !run.nodes.empty() &&
           std::all_of(run.nodes.begin(), run.nodes.end(), [&](const RunNode& node) {
             const auto it = presence.find(node.worker);
             return node.phase == NodePhase::kFinished ||
                    (it != presence.end() && it->second.report.is_ready &&
                     it->second.report.run == id && it->second.report.generation == run.generation);
           });
  });
}

namespace {

// All but what its node cache is to do.
Desired ActionFor(const State& state, const std::string& worker_name, const PresenceMap& presence,
                  const std::string& secret) {
  const auto present = presence.find(worker_name);
  if (present == presence.end()) return Desired{};
  const WorkerReport& report = present->second.report;
  const auto it = state.workers.find(worker_name);
  const bool is_known = it != state.workers.end();
  const bool is_about_held = is_known && !it->second.run.is_none() &&
                             report.phase != WorkerPhase::kIdle && report.run == it->second.run &&
                             report.generation == it->second.generation;
  // Whatever it has finished is recorded, as far as it ever will be.
  if (report.phase == WorkerPhase::kFinished)
    return Desired{DesiredAction::kForget, report.run, report.generation, std::nullopt};
  if (report.phase == WorkerPhase::kExecuting && !is_about_held)
    return Desired{DesiredAction::kStop, report.run, report.generation, std::nullopt};
  if (is_known && it->second.run.is_none())
    if (const Preflight* preflight = FindRunning(it->second); preflight != nullptr)
      return Desired{.action = DesiredAction::kCheck,
                     .generation = preflight->number,
                     .checks = OrderOf(state, *preflight, secret)};
  if (!is_known || it->second.run.is_none()) return Desired{};

  const Worker& worker = it->second;
  const Run& run = state.runs.at(worker.run);
  if (!IsTerminal(run.state) && run.state != RunState::kUploading)
    return Desired{DesiredAction::kExecute, run.id, worker.generation,
                   MakeOrder(state, run, worker, secret), MayStart(state, presence, run)};
  if (report.phase == WorkerPhase::kExecuting)
    return Desired{DesiredAction::kStop, run.id, worker.generation, std::nullopt};
  return Desired{};
}

bool DoesIt(const Desired& desired, const WorkerReport& report) {
  switch (desired.action) {
    case DesiredAction::kIdle:
      return report.phase == WorkerPhase::kIdle;
    case DesiredAction::kExecute:
      return report.phase == WorkerPhase::kExecuting && report.run == desired.run &&
             report.generation == desired.generation &&
             (report.has_leave_to_start || !desired.may_start);
    case DesiredAction::kCheck:
      return report.preflight.number == desired.generation &&
             (!report.preflight.is_done || IsToldByAnother(*desired.checks));
    case DesiredAction::kStop:
    case DesiredAction::kForget:
      return false;
  }
  return false;
}

}  // namespace

Desired DesiredFor(const State& state, const std::string& worker_name, const PresenceMap& presence,
                   const std::string& secret) {
  Desired desired = ActionFor(state, worker_name, presence, secret);
  const auto it = state.workers.find(worker_name);
  if (it == state.workers.end()) return desired;
  if (const CacheOrder* order = FindPending(it->second); order != nullptr) desired.cache = *order;
  return desired;
}

bool IsSatisfied(const Desired& desired, const WorkerReport& report) {
  return DoesIt(desired, report) && KnowsOrder(desired.cache, report.cache);
}

}  // namespace assay::core
