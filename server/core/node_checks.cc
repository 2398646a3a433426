#include "server/core/node_checks.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "server/core/decide.h"
#include "server/core/fabric.h"

namespace assay::core {
namespace {

constexpr char kClock[] = "clock";
// Checks whose values are compared.
struct Compared {
  const char* check;
  bool is_less_better = false;
};
constexpr Compared kCompared[] = {{"memory"},     {"compute"},       {"dataset-disk"},
                                  {"stage-disk"}, {kFabricLinkRate}, {kFabricLatency, true}};
// Of fewer rates than this a median says little of a type.
constexpr size_t kRateCountMin = 3;
constexpr double kClockOffsetMaxMs = 50;
constexpr int64_t kGiB = int64_t{1} << 30;

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// The worker's clock beside the coordinator's, as its calls have it.
void JudgeClock(const Synchronize& call, NodeCheck* check) {
  if (call.clock_offset_uncertainty_us <= 0) return;
  const double offset_ms = std::abs(static_cast<double>(call.clock_offset_us)) / 1000;
  const double bound_ms = static_cast<double>(call.clock_offset_uncertainty_us) / 1000;
  check->is_measured = true;
  check->value = offset_ms;
  check->unit = "ms";
  check->detail = absl::StrFormat("off from the coordinator's, give or take %.3f ms%s%s", bound_ms,
                                  check->detail.empty() ? "" : "; ", check->detail);
  if (offset_ms - bound_ms > kClockOffsetMaxMs)
    check->problem = absl::StrFormat("%.1f ms off from the coordinator's clock, over %.0f ms",
                                     offset_ms, kClockOffsetMaxMs);
}

const Compared* FindCompared(absl::string_view check) {
  const auto* const found =
      std::find_if(std::begin(kCompared), std::end(kCompared),
                   [check](const Compared& compared) { return compared.check == check; });
  return found == std::end(kCompared) ? nullptr : found;
}

// What was asked, with what came of it.
NodeCheck Judge(const State& state, const Worker& worker, const NodeCheck& asked,
                const Synchronize& call) {
  NodeCheck check{.check = asked.check, .detail = "the node has not said anything of it"};
  for (const NodeCheck& reported : call.report.preflight.checks)
    if (reported.check == asked.check) check = reported;
  check.policy = asked.policy;
  check.median.reset();
  if (check.check == kClock) {
    JudgeClock(call, &check);
  } else {
    Compare(state, {NodeType(worker.description.capabilities), check.check},
            worker.preflight->percent_of_median, &check);
  }
  return check;
}

bool HasGate(const Preflight& preflight) {
  return std::any_of(preflight.checks.begin(), preflight.checks.end(),
                     [](const NodeCheck& check) { return check.policy == CheckPolicy::kGate; });
}

}  // namespace

absl::string_view ToString(CheckPolicy policy) {
  switch (policy) {
    case CheckPolicy::kRecord:
      return "RECORD";
    case CheckPolicy::kWarn:
      return "WARN";
    case CheckPolicy::kGate:
      return "GATE";
  }
  return "";
}

absl::string_view ToString(PreflightState state) {
  switch (state) {
    case PreflightState::kRunning:
      return "RUNNING";
    case PreflightState::kPassed:
      return "PASSED";
    case PreflightState::kFailed:
      return "FAILED";
    case PreflightState::kDropped:
      return "DROPPED";
  }
  return "";
}

const PreflightPolicy* FindPreflight(const Policy& policy, const SubmissionSpec& spec) {
  const auto it = policy.profile_preflights.find(spec.fleet);
  const PreflightPolicy* found = &policy.preflight;
  if (it != policy.profile_preflights.end()) found = &it->second;
  return found->checks.empty() ? nullptr : found;
}

const Preflight* FindRunning(const Worker& worker) {
  const bool is_running =
      worker.preflight.has_value() && worker.preflight->state == PreflightState::kRunning;
  return is_running ? &*worker.preflight : nullptr;
}

bool IsChecked(const Submission& submission, const Worker& worker) {
  const std::vector<std::string>& nodes = submission.checked_nodes;
  return std::find(nodes.begin(), nodes.end(), NodeName(worker)) != nodes.end();
}

std::string NodeType(const Capabilities& capabilities) {
  std::string type =
      absl::StrCat(capabilities.cpu_model.empty() ? "unknown CPU" : capabilities.cpu_model, ", ",
                   capabilities.core_count, " cores, ", capabilities.memory_bytes / kGiB, " GiB");
  if (capabilities.accelerator_count > 0)
    absl::StrAppend(&type, ", ", capabilities.accelerator_count, " x ",
                    capabilities.accelerator_model);
  return type;
}

bool IsCompared(const NodeCheck& check) {
  return FindCompared(check.check) != nullptr;
}

void Compare(const State& state, const RateKey& key, int32_t percent, NodeCheck* check) {
  const Compared* const compared = FindCompared(check->check);
  const auto it = state.rates.find(key);
  if (compared == nullptr || !check->is_measured || it == state.rates.end() ||
      it->second.values.size() < kRateCountMin)
    return;
  check->median = MedianOf(it->second.values);
  const double rate_of_median =
      compared->is_less_better ? *check->median / check->value : check->value / *check->median;
  if (!(rate_of_median < static_cast<double>(percent) / 100) || !check->problem.empty()) return;
  check->problem = absl::StrFormat(
      "%.1f %s, %s the median %.1f of the last %d of its type", check->value, check->unit,
      compared->is_less_better ? absl::StrFormat("more than %.2f times", 100.0 / percent)
                               : absl::StrFormat("below %d %% of", percent),
      *check->median, it->second.values.size());
}

std::string ProblemsOf(const std::vector<NodeCheck>& checks, CheckPolicy policy) {
  std::vector<std::string> problems;
  for (const NodeCheck& check : checks)
    if (check.policy == policy && !check.problem.empty())
      problems.push_back(absl::StrCat(check.check, " ", check.problem));
  return absl::StrJoin(problems, "; ").substr(0, kTextBytesMax);
}

void Finish(const Worker& worker, PreflightState end, const std::string& reason,
            std::vector<NodeCheck> checks, bool is_there, std::vector<Event>* events) {
  const Preflight& preflight = *worker.preflight;
  events->push_back(PreflightFinished{.worker = worker.name,
                                      .submission = preflight.submission,
                                      .state = end,
                                      .reason = reason,
                                      .node_type = NodeType(worker.description.capabilities),
                                      .checks = std::move(checks)});
  if (end != PreflightState::kFailed) return;
  const bool is_away = !is_there && worker.state == WorkerState::kLost;
  events->push_back(
      WorkerStateChanged{.worker = worker.name,
                         .state = is_away ? worker.state : WorkerState::kDraining,
                         .reason = absl::StrCat("pre-flight: ", reason).substr(0, kTextBytesMax),
                         .is_drain_requested = true});
}

Event StartPreflight(const State& state, SubmissionId submission, const std::string& worker,
                     const Policy& policy, int64_t now_us) {
  const PreflightPolicy& wanted = *FindPreflight(policy, state.submissions.at(submission).spec);
  return PreflightStarted{.worker = worker,
                          .submission = submission,
                          .checks = ChecksOf(wanted, /*is_fabric=*/false),
                          .percent_of_median = wanted.percent_of_median,
                          .time_limit_us = wanted.time_limit_us,
                          .deadline_us = now_us + wanted.time_limit_us + kPreflightAnswerTimeUs};
}

PreflightOrder OrderOf(const State& state, const Preflight& preflight, const std::string& secret) {
  PreflightOrder order{.time_limit_us = preflight.time_limit_us};
  for (const NodeCheck& check : preflight.checks)
    order.checks.push_back(check.check);
  if (IsOfGang(preflight)) order.fabric = FabricOrderOf(state, preflight, secret);
  const auto it = state.submissions.find(preflight.submission);
  if (it == state.submissions.end()) return order;
  const SubmissionSpec& spec = it->second.spec;
  order.is_staged = spec.staging == "node";
  if (const auto dataset = state.datasets.find(spec.dataset); dataset != state.datasets.end())
    order.dataset_path = dataset->second.path;
  return order;
}

void HearPreflight(const State& state, const Worker& worker, const Synchronize& command,
                   std::vector<Event>* events) {
  const Preflight* const preflight = FindRunning(worker);
  const PreflightReport& report = command.report.preflight;
  if (preflight == nullptr || command.is_leaving || !report.is_done ||
      report.number != preflight->number)
    return;
  if (IsOfGang(*preflight)) return HearFabric(state, worker, command, events);
  std::vector<NodeCheck> checks;
  for (const NodeCheck& asked : preflight->checks)
    checks.push_back(Judge(state, worker, asked, command));
  const std::string reason = ProblemsOf(checks, CheckPolicy::kGate);
  Finish(worker, reason.empty() ? PreflightState::kPassed : PreflightState::kFailed, reason,
         std::move(checks), /*is_there=*/true, events);
}

std::vector<Event> AdvancePreflights(const State& state, int64_t now_us) {
  std::vector<Event> events;
  for (const auto& entry : state.workers) {
    const Worker& worker = entry.second;
    const Preflight* const preflight = FindRunning(worker);
    if (preflight == nullptr || worker.is_forgotten) continue;
    const auto set = state.submissions.find(preflight->submission);
    const auto end = [&](PreflightState how, const std::string& reason) {
      Finish(worker, how, reason, preflight->checks, /*is_there=*/false, &events);
    };
    if (set == state.submissions.end() || IsTerminal(set->second.state)) {
      end(PreflightState::kDropped, absl::StrCat(preflight->submission.ToString(), " has ended"));
    } else if (worker.state == WorkerState::kGone) {
      end(PreflightState::kDropped, "the node has left");
    } else if (!IsGangThere(state, *preflight)) {
      end(PreflightState::kDropped, "the check of its gang has ended");
    } else if (now_us >= preflight->deadline_us) {
      // Of a gang rank 0 tells for all, so that nothing speaks against the others.
      const PreflightState silent =
          IsToldByAnother(*preflight) ? PreflightState::kDropped : PreflightState::kFailed;
      end(HasGate(*preflight) ? silent : PreflightState::kPassed,
          absl::StrCat("no answer within ",
                       (preflight->deadline_us - preflight->started_at_us) / 1'000'000, " s"));
    }
  }
  return events;
}

void ApplyPreflightStart(const RecordedEvent& record, const PreflightStarted& event,
                         const State& state, Worker* worker) {
  Preflight preflight{.number = record.seq,
                      .submission = event.submission,
                      .checks = event.checks,
                      .percent_of_median = event.percent_of_median,
                      .time_limit_us = event.time_limit_us,
                      .started_at_us = record.at_us,
                      .deadline_us = event.deadline_us,
                      .place = event.place};
  // What it has passed alone for this set, which is not the node's last if sets take turns on it.
  const auto passed = state.passed.find({event.submission, NodeName(*worker)});
  if (IsOfGang(preflight) && passed != state.passed.end())
    for (const NodeCheck& check : passed->second.checks)
      if (!IsFabric(check.check)) preflight.node_checks.push_back(check);
  worker->preflight = std::move(preflight);
}

void ApplyPreflight(const RecordedEvent& record, const PreflightFinished& event, Worker* worker,
                    State* state) {
  Preflight& preflight = *worker->preflight;
  preflight.state = event.state;
  preflight.reason = event.reason;
  preflight.checks = std::exchange(preflight.node_checks, {});
  preflight.checks.insert(preflight.checks.end(), event.checks.begin(), event.checks.end());
  preflight.ended_at_us = record.at_us;
  for (const NodeCheck& check : event.checks) {
    if (!check.is_measured || !IsCompared(check)) continue;
    const RateKey key{event.node_type, check.check};
    if (!state->rates.contains(key) && state->rates.size() >= kRateKeyCountMax) continue;
    std::vector<double>& values = state->rates[key].values;
    values.push_back(check.value);
    if (values.size() > kRateCountMax) values.erase(values.begin());
  }
  const auto set = state->submissions.find(event.submission);
  if (set == state->submissions.end()) return;
  if (event.state == PreflightState::kPassed && !IsTerminal(set->second.state))
    state->passed.insert_or_assign(PassedKey{event.submission, NodeName(*worker)}, preflight);
  if (IsOfGang(preflight)) {
    ApplyFabric(preflight, &set->second);
  } else if (event.state == PreflightState::kPassed) {
    set->second.checked_nodes.push_back(NodeName(*worker));
  }
  if (event.state != PreflightState::kFailed) return;
  set->second.preflight_error =
      absl::StrCat("pre-flight of node ", NodeName(*worker), ": ", event.reason);
  // A batch system's nodes have a label; what it asks for next shall not be this one.
  if (NodeName(*worker) != worker->name) set->second.absent_hosts.push_back(NodeName(*worker));
}

absl::Status CheckReport(const PreflightReport& report) {
  if (report.checks.size() > kNodeCheckCountMax)
    return absl::InvalidArgumentError(absl::StrCat("preflight: expected at most ",
                                                   kNodeCheckCountMax, " checks, found ",
                                                   report.checks.size()));
  for (const NodeCheck& check : report.checks)
    if (!std::isfinite(check.value) || check.value < 0)
      return absl::InvalidArgumentError(
          absl::StrCat("preflight: the value of ", check.check, " is no number of 0 or more"));
  if (report.fabric.has_value()) return CheckFabricReport(*report.fabric);
  return absl::OkStatus();
}

}  // namespace assay::core
