#include "server/core/worker_view.h"

namespace assay::core {

WorkersReply::Entry BriefEntry(const Worker& worker, const Presence& presence) {
  WorkersReply::Entry entry;
  entry.worker.name = worker.name;
  entry.worker.state = worker.state;
  entry.worker.state_reason = worker.state_reason;
  entry.worker.run = worker.run;
  entry.worker.generation = worker.generation;
  entry.worker.allocation = worker.allocation;
  const Capabilities& all = worker.description.capabilities;
  Capabilities& capabilities = entry.worker.description.capabilities;
  capabilities.host_name = all.host_name;
  capabilities.core_count = all.core_count;
  capabilities.memory_bytes = all.memory_bytes;
  capabilities.accelerator_count = all.accelerator_count;
  entry.presence.last_seen_us = presence.last_seen_us;
  entry.presence.figures = presence.figures;
  entry.presence.figures_heard_at_us = presence.figures_heard_at_us;
  return entry;
}

void HideWork(const State& state, const VisibleTo& viewer, WorkersReply::Entry* entry) {
  const auto may_see = [&state, &viewer](SubmissionId id) {
    const auto it = state.submissions.find(id);
    return viewer.sees_all || (it != state.submissions.end() &&
                               SightOf(viewer, DisclosureOf(it->second)) == Sight::kWhole);
  };
  Worker& worker = entry->worker;
  const auto run = state.runs.find(worker.run);
  if (!viewer.sees_all && (run == state.runs.end() || !may_see(run->second.submission))) {
    worker.run = {};
    worker.generation = 0;  // counts the runs that it was given
    entry->presence.figures.reset();
  }
  if (worker.preflight.has_value() && !may_see(worker.preflight->submission))
    worker.preflight.reset();
  const auto lease = state.allocations.find(worker.allocation);
  const bool is_shared =
      lease != state.allocations.end() && lease->second.spec.submission.is_none();
  if (!is_shared && !viewer.sees_all &&
      (lease == state.allocations.end() || !may_see(lease->second.spec.submission)))
    worker.allocation = {};
}

}  // namespace assay::core
