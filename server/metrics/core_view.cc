#include "server/metrics/core_view.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/time/time.h"

namespace assay::metrics {
namespace {

using core::AllocationState;
using core::RunState;
using core::SubmissionState;
using core::WorkerState;

constexpr SubmissionState kSubmissionStates[] = {SubmissionState::kOpen, SubmissionState::kRunning,
                                                 SubmissionState::kChecking};
constexpr RunState kRunStates[] = {RunState::kQueued, RunState::kAssigned, RunState::kRunning,
                                   RunState::kUploading};
constexpr AllocationState kAllocationStates[] = {
    AllocationState::kRequested, AllocationState::kGranted, AllocationState::kActive,
    AllocationState::kReleasing};
constexpr WorkerState kWorkerStates[] = {WorkerState::kAlive, WorkerState::kSuspect,
                                         WorkerState::kLost, WorkerState::kDraining,
                                         WorkerState::kGone};

// How many of `things` are in each of `states`; those in others have ended.
template <typename Things, typename State, size_t N>
StateCounts CountByState(const Things& things, const State (&states)[N]) {
  std::map<State, double> counts;
  for (const auto& [id, thing] : things)
    ++counts[thing.state];
  StateCounts named;
  for (const State state : states)
    named[StateLabel(ToString(state))] = counts[state];
  return named;
}

prometheus::MetricFamily ByState(const char* name, const char* help, const StateCounts& counts) {
  prometheus::MetricFamily family = GaugeFamily(name, help);
  for (const auto& [state, count] : counts)
    AddValue(&family, count, {{"state", state}});
  return family;
}

}  // namespace

std::string StateLabel(absl::string_view state) {
  return absl::AsciiStrToLower(state);
}

CoreView ViewOf(const core::Core& core) {
  const core::State& state = core.state();
  CoreView view;
  view.submissions = CountByState(state.submissions, kSubmissionStates);
  view.runs = CountByState(state.runs, kRunStates);
  view.allocations = CountByState(state.allocations, kAllocationStates);
  view.workers = CountByState(state.workers, kWorkerStates);
  view.fleet.reserve(state.workers.size());
  for (const auto& [name, worker] : state.workers) {
    if (worker.state == WorkerState::kGone) continue;
    WorkerView seen{
        .name = name,
        .is_silent = worker.state == WorkerState::kSuspect || worker.state == WorkerState::kLost,
        .is_executing = !worker.run.is_none()};
    if (const auto it = core.presence().find(name); it != core.presence().end())
      seen.offset_seconds = absl::ToDoubleSeconds(absl::Microseconds(it->second.clock_offset_us));
    view.fleet.push_back(std::move(seen));
  }
  return view;
}

Families ToFamilies(const CoreView& view) {
  prometheus::MetricFamily silent = GaugeFamily(
      "assay_worker_silent", "1 while nothing is heard of the worker (SUSPECT or LOST), else 0.");
  prometheus::MetricFamily executing =
      GaugeFamily("assay_worker_executing", "1 while the worker holds a run, else 0.");
  prometheus::MetricFamily offset =
      GaugeFamily("assay_worker_clock_offset_seconds",
                  "The worker's wall clock minus the coordinator's, as measured last.");
  prometheus::MetricFamily lag = GaugeFamily(
      "assay_worker_event_lag_seconds",
      "How long the events of the worker's run had waited on its node when they came last.");
  for (const WorkerView& worker : view.fleet) {
    const Labels labels = {{"worker", worker.name}};
    AddValue(&silent, worker.is_silent ? 1 : 0, labels);
    AddValue(&executing, worker.is_executing ? 1 : 0, labels);
    AddValue(&offset, worker.offset_seconds, labels);
    if (worker.lag_seconds.has_value()) AddValue(&lag, *worker.lag_seconds, labels);
  }
  return {
      ByState("assay_submissions", "Entries that have not ended, by state.", view.submissions),
      ByState("assay_runs", "Runs that have not ended, by state; queued is the queue.", view.runs),
      ByState("assay_allocations", "Leases of nodes that have not ended, by state.",
              view.allocations),
      ByState("assay_workers", "Workers that the coordinator knows, by state.", view.workers),
      std::move(silent),
      std::move(executing),
      std::move(offset),
      std::move(lag)};
}

}  // namespace assay::metrics
