#include "server/core/fabric.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "common/sha256.h"
#include "server/core/node_checks.h"

namespace assay::core {
namespace {

constexpr int64_t kTimeLimitUs = 120LL * 1'000'000;

// The links of a rank: with the next one, and with the one before, where that is another.
struct Neighbour {
  int32_t rank = 0;
  FabricLink link;
};
std::vector<Neighbour> NeighboursOf(int32_t rank, const std::vector<FabricLink>& links) {
  const auto count = static_cast<int32_t>(links.size());
  const int32_t next = (rank + 1) % count;
  const int32_t before = (rank + count - 1) % count;
  std::vector<Neighbour> neighbours;
  if (count != 2 || rank == 0) neighbours.push_back({next, links[static_cast<size_t>(rank)]});
  if (count != 2 || rank == 1) neighbours.push_back({before, links[static_cast<size_t>(before)]});
  return neighbours;
}

std::string Describe(const FabricReport& report, const std::vector<Neighbour>& neighbours,
                     const std::vector<const Worker*>& gang) {
  std::string text =
      absl::StrFormat("all-reduce of all %d: 8 bytes in %.1f us, 64 MiB at %.2f GB/s", gang.size(),
                      report.all_reduce_us, report.all_reduce_gb_per_s);
  for (const Neighbour& neighbour : neighbours)
    absl::StrAppendFormat(&text, "; with %s: %.1f us, %.2f GB/s",
                          NodeName(*gang[static_cast<size_t>(neighbour.rank)]),
                          neighbour.link.latency_us, neighbour.link.gb_per_s);
  return text;
}

// What the numbers of the gang say of one of its ranks; not judged yet.
NodeCheck Measured(const NodeCheck& asked, const FabricReport& report, int32_t rank,
                   const std::vector<const Worker*>& gang) {
  NodeCheck check{.check = asked.check, .policy = asked.policy};
  if (report.links.size() != gang.size()) {
    check.detail = report.error.empty() ? "not every node has come" : report.error;
    return check;
  }
  const std::vector<Neighbour> neighbours = NeighboursOf(rank, report.links);
  const bool is_latency = check.check == kFabricLatency;
  check.is_measured = true;
  check.unit = is_latency ? "us" : "GB/s";
  check.value = is_latency ? neighbours.front().link.latency_us : neighbours.front().link.gb_per_s;
  for (const Neighbour& neighbour : neighbours)
    check.value = is_latency ? std::min(check.value, neighbour.link.latency_us)
                             : std::max(check.value, neighbour.link.gb_per_s);
  check.detail = Describe(report, neighbours, gang);
  return check;
}

// Why the rank is to blame if not all have come; empty: it is not.
std::string AbsenceOf(const FabricReport& report, int32_t rank,
                      const std::vector<const Worker*>& gang) {
  const std::string& address = gang.front()->description.capabilities.rendezvous_address;
  if (report.absent_ranks.empty()) return "";
  const bool is_everybody = report.absent_ranks.size() + 1 == gang.size();
  if (is_everybody)
    return rank == 0 ? absl::StrCat("none of the other nodes has reached it at ", address) : "";
  const auto& absent = report.absent_ranks;
  if (std::find(absent.begin(), absent.end(), rank) == absent.end()) return "";
  return absl::StrCat("has not reached ", NodeName(*gang.front()), " at ", address);
}

// The workers at the check, by rank. Those that have left it are missing.
std::vector<const Worker*> GangOf(const State& state, const Worker& root) {
  std::vector<const Worker*> gang;
  for (const auto& [name, worker] : state.workers) {
    const Preflight* const running = FindRunning(worker);
    if (running != nullptr && running->place.root == root.name &&
        running->place.gang == root.preflight->place.gang)
      gang.push_back(&worker);
  }
  std::sort(gang.begin(), gang.end(), [](const Worker* a, const Worker* b) {
    return a->preflight->place.rank < b->preflight->place.rank;
  });
  return gang;
}

std::vector<NodeCheck> JudgeRank(const State& state, const FabricReport& report, int32_t rank,
                                 const std::vector<const Worker*>& gang) {
  const Worker& worker = *gang[static_cast<size_t>(rank)];
  std::vector<NodeCheck> checks;
  for (const NodeCheck& asked : worker.preflight->checks) {
    NodeCheck check = Measured(asked, report, rank, gang);
    check.problem = AbsenceOf(report, rank, gang);
    Compare(state, {NodeType(worker.description.capabilities), check.check},
            worker.preflight->percent_of_median, &check);
    checks.push_back(std::move(check));
  }
  return checks;
}

// Of a rank 0 whose process has failed, which speaks against its node and no other.
std::string FailureOfRoot(const PreflightReport& report) {
  if (report.fabric.has_value()) return "";
  for (const NodeCheck& check : report.checks)
    if (IsFabric(check.check) && !check.problem.empty()) return check.problem;
  return "";
}

// What is judged: nothing if not all of the gang are at it any more.
FabricReport ReportOf(const PreflightReport& report, bool is_gang_whole) {
  if (!is_gang_whole) return {.error = "a node has left meanwhile"};
  return report.fabric.value_or(FabricReport{.error = "rank 0 has not measured it"});
}

}  // namespace

bool IsFabric(absl::string_view check) {
  return check == kFabricLinkRate || check == kFabricLatency;
}

std::vector<NodeCheck> ChecksOf(const PreflightPolicy& policy, bool is_fabric) {
  std::vector<NodeCheck> checks;
  std::copy_if(policy.checks.begin(), policy.checks.end(), std::back_inserter(checks),
               [&](const NodeCheck& check) { return IsFabric(check.check) == is_fabric; });
  return checks;
}

std::string GangKey(std::vector<std::string> nodes) {
  std::sort(nodes.begin(), nodes.end());
  return Sha256Hex(absl::StrJoin(nodes, "\n"));
}

bool NeedsFabricCheck(const PreflightPolicy& policy, const Submission& submission,
                      const std::vector<std::string>& nodes) {
  const int64_t count = std::ssize(nodes);
  return count >= 2 && count <= kFabricNodeCountMax &&
         !ChecksOf(policy, /*is_fabric=*/true).empty() && submission.checked_gang != GangKey(nodes);
}

void StartFabricCheck(const State& state, SubmissionId submission,
                      const std::vector<std::string>& workers, const Policy& policy, int64_t now_us,
                      std::vector<Event>* events) {
  const PreflightPolicy& wanted = *FindPreflight(policy, state.submissions.at(submission).spec);
  std::vector<std::string> nodes;
  for (const std::string& worker : workers)
    nodes.push_back(NodeName(state.workers.at(worker)));
  const std::string gang = GangKey(std::move(nodes));
  for (size_t rank = 0; rank < workers.size(); ++rank)
    events->push_back(
        PreflightStarted{.worker = workers[rank],
                         .submission = submission,
                         .checks = ChecksOf(wanted, /*is_fabric=*/true),
                         .percent_of_median = wanted.percent_of_median,
                         .time_limit_us = kTimeLimitUs,
                         .deadline_us = now_us + kTimeLimitUs + kPreflightAnswerTimeUs,
                         .place = {.gang = gang,
                                   .rank = static_cast<int32_t>(rank),
                                   .node_count = static_cast<int32_t>(workers.size()),
                                   .root = workers.front()}});
}

bool IsOfGang(const Preflight& preflight) {
  return !preflight.place.gang.empty();
}

bool IsToldByAnother(const Preflight& preflight) {
  return IsOfGang(preflight) && preflight.place.rank > 0;
}

bool IsToldByAnother(const PreflightOrder& order) {
  return order.fabric.has_value() && order.fabric->rank > 0;
}

bool IsGangThere(const State& state, const Preflight& preflight) {
  if (!IsOfGang(preflight)) return true;
  const auto root = state.workers.find(preflight.place.root);
  if (root == state.workers.end() || root->second.state == WorkerState::kGone) return false;
  const Preflight* const running = FindRunning(root->second);
  return running != nullptr && running->place.gang == preflight.place.gang &&
         running->started_at_us == preflight.started_at_us;
}

FabricOrder FabricOrderOf(const State& state, const Preflight& preflight,
                          const std::string& secret) {
  FabricOrder order{.rank = preflight.place.rank, .node_count = preflight.place.node_count};
  const auto root = state.workers.find(preflight.place.root);
  if (root == state.workers.end() || !root->second.preflight.has_value()) return order;
  order.name = absl::StrCat("preflight-", root->second.preflight->number);
  order.rendezvous_address = root->second.description.capabilities.rendezvous_address;
  order.token = Sha256Hex(absl::StrCat(secret, "\n", order.name));
  return order;
}

void HearFabric(const State& state, const Worker& worker, const Synchronize& command,
                std::vector<Event>* events) {
  if (IsToldByAnother(*worker.preflight)) return;
  const std::vector<const Worker*> gang = GangOf(state, worker);
  const PreflightReport& told = command.report.preflight;
  const FabricReport report =
      ReportOf(told, std::ssize(gang) == worker.preflight->place.node_count);
  for (size_t rank = 0; rank < gang.size(); ++rank) {
    std::vector<NodeCheck> checks = JudgeRank(state, report, static_cast<int32_t>(rank), gang);
    if (rank == 0 && checks.front().problem.empty()) checks.front().problem = FailureOfRoot(told);
    const std::string reason = ProblemsOf(checks, CheckPolicy::kGate);
    Finish(*gang[rank], reason.empty() ? PreflightState::kPassed : PreflightState::kFailed, reason,
           std::move(checks), /*is_there=*/gang[rank] == &worker, events);
  }
}

// Rank 0's end comes before the others'.
void ApplyFabric(const Preflight& preflight, Submission* submission) {
  const std::string& gang = preflight.place.gang;
  if (preflight.state == PreflightState::kPassed && preflight.place.rank == 0)
    submission->checked_gang = gang;
  if (preflight.state == PreflightState::kFailed && submission->checked_gang == gang)
    submission->checked_gang.clear();
}

absl::Status CheckFabricReport(const FabricReport& report) {
  if (std::ssize(report.links) > kFabricNodeCountMax ||
      std::ssize(report.absent_ranks) > kFabricNodeCountMax)
    return absl::InvalidArgumentError(absl::StrCat(
        "preflight: expected at most ", kFabricNodeCountMax, " nodes of a gang, found ",
        std::max(report.links.size(), report.absent_ranks.size())));
  const auto is_number = [](double value) { return std::isfinite(value) && value >= 0; };
  const bool are_links_good =
      std::all_of(report.links.begin(), report.links.end(), [&](const FabricLink& link) {
        return is_number(link.latency_us) && is_number(link.gb_per_s);
      });
  if (are_links_good && is_number(report.all_reduce_us) && is_number(report.all_reduce_gb_per_s))
    return absl::OkStatus();
  return absl::InvalidArgumentError("preflight: a value of the fabric is no number of 0 or more");
}

}  // namespace assay::core
