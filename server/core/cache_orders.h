// Orders for the caches of nodes: a level of the worker, as its pre-flight is. An order is wanted
// under its number until the worker says that it is done, or why it has failed. Pure functions.

#ifndef SERVER_CORE_CACHE_ORDERS_H_
#define SERVER_CORE_CACHE_ORDERS_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"

#include "server/core/command.h"
#include "server/core/event.h"
#include "server/core/node_cache.h"
#include "server/core/worker.h"

namespace assay::core {

// What the worker is to carry out now: the first order that is pending; nullptr: none.
const CacheOrder* FindPending(const Worker& worker);

// True if who reports this knows that `wanted` is all that is to be done.
bool KnowsOrder(const std::optional<CacheOrder>& wanted, const std::optional<CacheReport>& report);

// What the call says of the order that is pending on its worker: that it has ended, and how. One
// for a worker whose agent has no cache any more fails.
void HearCache(const Worker& worker, const Synchronize& command, std::vector<Event>* events);

void ApplyCache(const RecordedEvent& record, const CacheOrdered& event, Worker* worker);
void ApplyCache(const RecordedEvent& record, const CacheOrderEnded& event, Worker* worker);

// INVALID_ARGUMENT if a report has more than kCachedDatasetCountMax datasets, or a number below 0.
absl::Status CheckCacheReport(const std::optional<CacheReport>& report);

}  // namespace assay::core

#endif  // SERVER_CORE_CACHE_ORDERS_H_
