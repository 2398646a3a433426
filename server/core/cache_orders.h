// Orders for the caches of nodes: a level of the worker, as its pre-flight is. An order is wanted
// under its number until the worker says that it is done, or why it has failed. One that has failed
// for a reason that may pass waits, longer each time, and is wanted again under a new number: for
// kCacheTryCountMax tries, which take about 20 h. Pure functions.

#ifndef SERVER_CORE_CACHE_ORDERS_H_
#define SERVER_CORE_CACHE_ORDERS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"

#include "server/core/command.h"
#include "server/core/event.h"
#include "server/core/node_cache.h"
#include "server/core/worker.h"

namespace assay::core {

inline constexpr int32_t kCacheTryCountMax = 30;

// What the worker is to carry out now: the first order that is pending, does not wait for another
// try, and has none about its dataset before it that does; nullptr: none.
const CacheOrder* FindPending(const Worker& worker);

// True if who reports this knows that `wanted` is all that is to be done.
bool KnowsOrder(const std::optional<CacheOrder>& wanted, const std::optional<CacheReport>& report);

// What the call says of the order that is carried out: that it has ended and how, or when it is
// tried again. One for a worker whose agent has no cache any more fails.
void HearCache(const Worker& worker, const Synchronize& command, int64_t now_us,
               std::vector<Event>* events);

// CacheOrderRetried for each order whose time has come.
std::vector<Event> RetryCacheOrders(const State& state, int64_t now_us);

// When the first order of the worker is tried again; nullopt: none waits for that.
std::optional<int64_t> NextCacheRetryUs(const Worker& worker);

void ApplyCache(const RecordedEvent& record, const CacheOrdered& event, Worker* worker);
void ApplyCache(const RecordedEvent& record, const CacheOrderEnded& event, Worker* worker);
void ApplyCache(const RecordedEvent& record, const CacheOrderPostponed& event, Worker* worker);
void ApplyCache(const RecordedEvent& record, const CacheOrderRetried& event, Worker* worker);

// INVALID_ARGUMENT if a report has more than kCachedDatasetCountMax datasets, or a number below 0.
absl::Status CheckCacheReport(const std::optional<CacheReport>& report);

}  // namespace assay::core

#endif  // SERVER_CORE_CACHE_ORDERS_H_
