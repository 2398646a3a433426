// What is told of a worker (ListWorkers), and to whom.

#ifndef SERVER_CORE_WORKER_VIEW_H_
#define SERVER_CORE_WORKER_VIEW_H_

#include "server/core/command.h"
#include "server/core/types.h"
#include "server/core/visibility.h"

namespace assay::core {

// What ListWorkers tells with is_brief.
WorkersReply::Entry BriefEntry(const Worker& worker, const Presence& presence);

// Takes from what is told of a worker what it does for submissions that `viewer` does not see
// whole: its run and figures, its lease, its pre-flight. Of a submission that is not in memory
// nobody knows here whose it is: only who sees all is told.
void HideWork(const State& state, const VisibleTo& viewer, WorkersReply::Entry* entry);

}  // namespace assay::core

#endif  // SERVER_CORE_WORKER_VIEW_H_
