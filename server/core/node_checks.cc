#include "server/core/node_checks.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "server/core/decide.h"

namespace assay::core {
namespace {

constexpr char kClock[] = "clock";
// Checks whose rates are compared: the higher, the better.
constexpr absl::string_view kRates[] = {"memory", "compute", "dataset-disk", "stage-disk"};
// Of fewer rates than this a median says little of a type.
constexpr size_t kRateCountMin = 3;
constexpr double kClockOffsetMaxMs = 50;
// For the last check, which begins within the time limit, to end, and for the answer to come.
constexpr int64_t kAnswerTimeUs = 30LL * 1'000'000;
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

void JudgeRate(const State& state, const RateKey& key, int32_t percent, NodeCheck* check) {
  const auto it = state.rates.find(key);
  if (it == state.rates.end() || it->second.values.size() < kRateCountMin) return;
  check->median = MedianOf(it->second.values);
  if (check->value >= *check->median * percent / 100 || !check->problem.empty()) return;
  check->problem =
      absl::StrFormat("%.1f %s, below %d %% of the median %.1f of the last %d of its type",
                      check->value, check->unit, percent, *check->median, it->second.values.size());
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
  } else if (check.is_measured && IsRate(check)) {
    JudgeRate(state, {NodeType(worker.description.capabilities), check.check},
              worker.preflight->percent_of_median, &check);
  }
  return check;
}

std::string ProblemsOf(const std::vector<NodeCheck>& checks, CheckPolicy policy) {
  std::vector<std::string> problems;
  for (const NodeCheck& check : checks)
    if (check.policy == policy && !check.problem.empty())
      problems.push_back(absl::StrCat(check.check, " ", check.problem));
  return absl::StrJoin(problems, "; ").substr(0, kTextBytesMax);
}

// The end, and the drain of a node that has failed. `is_there`: it has just called.
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

bool IsRate(const NodeCheck& check) {
  return std::find(std::begin(kRates), std::end(kRates), check.check) != std::end(kRates);
}

Event StartPreflight(const State& state, SubmissionId submission, const std::string& worker,
                     const Policy& policy, int64_t now_us) {
  const PreflightPolicy& wanted = *FindPreflight(policy, state.submissions.at(submission).spec);
  return PreflightStarted{.worker = worker,
                          .submission = submission,
                          .checks = wanted.checks,
                          .percent_of_median = wanted.percent_of_median,
                          .time_limit_us = wanted.time_limit_us,
                          .deadline_us = now_us + wanted.time_limit_us + kAnswerTimeUs};
}

PreflightOrder OrderOf(const State& state, const Preflight& preflight) {
  PreflightOrder order{.time_limit_us = preflight.time_limit_us};
  for (const NodeCheck& check : preflight.checks)
    order.checks.push_back(check.check);
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
    } else if (now_us >= preflight->deadline_us) {
      end(HasGate(*preflight) ? PreflightState::kFailed : PreflightState::kPassed,
          absl::StrCat("no answer within ",
                       (preflight->deadline_us - preflight->started_at_us) / 1'000'000, " s"));
    }
  }
  return events;
}

void ApplyPreflight(const RecordedEvent& record, const PreflightFinished& event, Worker* worker,
                    State* state) {
  Preflight& preflight = *worker->preflight;
  preflight.state = event.state;
  preflight.reason = event.reason;
  preflight.checks = event.checks;
  preflight.ended_at_us = record.at_us;
  for (const NodeCheck& check : event.checks) {
    if (!check.is_measured || !IsRate(check)) continue;
    const RateKey key{event.node_type, check.check};
    if (!state->rates.contains(key) && state->rates.size() >= kRateKeyCountMax) continue;
    std::vector<double>& values = state->rates[key].values;
    values.push_back(check.value);
    if (values.size() > kRateCountMax) values.erase(values.begin());
  }
  const auto set = state->submissions.find(event.submission);
  if (set == state->submissions.end()) return;
  if (event.state == PreflightState::kPassed)
    set->second.checked_nodes.push_back(NodeName(*worker));
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
  return absl::OkStatus();
}

}  // namespace assay::core
