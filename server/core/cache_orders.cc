#include "server/core/cache_orders.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"
#include "server/core/decide.h"

namespace assay::core {
namespace {

constexpr int64_t kTryPauseMinUs = 5LL * 1'000'000;
constexpr int64_t kTryPauseMaxUs = 3600LL * 1'000'000;

bool IsPending(const CacheOrder& order) {
  return order.state == CacheOrderState::kPending;
}

bool WaitsForRetry(const CacheOrder& order) {
  return IsPending(order) && order.retry_at_us != 0;
}

bool IsAboutPin(CacheAction action) {
  return action == CacheAction::kPin || action == CacheAction::kUnpin;
}

// After so many failures.
int64_t TryPauseUs(int32_t failure_count) {
  const int32_t doublings = std::clamp(failure_count - 1, 0, 10);
  return std::min(kTryPauseMinUs << doublings, kTryPauseMaxUs);
}

// What a failed try of the order comes to.
Event FailTry(const Worker& worker, const CacheOrder& order, const CacheReport& report,
              int64_t now_us) {
  const std::string problem = report.problem.substr(0, kTextBytesMax);
  const int32_t failure_count = order.failure_count + 1;
  if (report.is_temporary && failure_count < kCacheTryCountMax)
    return CacheOrderPostponed{.worker = worker.name,
                               .number = order.number,
                               .problem = problem,
                               .retry_at_us = now_us + TryPauseUs(failure_count)};
  return CacheOrderEnded{.worker = worker.name, .number = order.number, .problem = problem};
}

CacheOrder& GetOrder(const RecordedEvent& record, int64_t number, Worker* worker) {
  const auto it =
      std::find_if(worker->cache_orders.begin(), worker->cache_orders.end(),
                   [number](const CacheOrder& order) { return order.number == number; });
  CHECK(it != worker->cache_orders.end()) << "event=" << record.seq << " is about no order";
  return *it;
}

bool HasCache(const Worker& worker) {
  return worker.description.capabilities.cache_bytes > 0;
}

// OK if the worker can be given an order.
absl::Status CheckWorker(const State& state, const std::string& name) {
  const auto it = state.workers.find(name);
  if (it == state.workers.end() || it->second.is_forgotten)
    return absl::NotFoundError(
        absl::StrCat("there is no node ", name, "; 'assay node list' shows all"));
  const Worker& worker = it->second;
  if (worker.state == WorkerState::kGone)
    return absl::FailedPreconditionError(
        absl::StrCat("node ", name, " has left (", worker.state_reason,
                     "): start its agent again, or leave the node out"));
  if (!HasCache(worker))
    return absl::FailedPreconditionError(
        absl::StrCat("node ", name,
                     " has no cache: set node_cache in its agent's configuration, restart the "
                     "agent, or leave the node out"));
  const auto pending =
      std::count_if(worker.cache_orders.begin(), worker.cache_orders.end(), IsPending);
  if (static_cast<size_t>(pending) >= kCacheOrderCountMax)
    return absl::ResourceExhaustedError(absl::StrCat("node ", name, " has ", kCacheOrderCountMax,
                                                     " orders for its cache pending; wait for it"));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> WorkersFor(const State& state,
                                                    const OrderCaches& command) {
  std::vector<std::string> workers = command.workers;
  if (workers.empty()) {
    for (const auto& [name, worker] : state.workers)
      if (HasCache(worker) && worker.state != WorkerState::kGone && !worker.is_forgotten)
        workers.push_back(name);
  }
  if (workers.empty())
    return absl::FailedPreconditionError(
        "no node has a cache: set node_cache in the configuration of agents and restart them");
  std::sort(workers.begin(), workers.end());
  workers.erase(std::unique(workers.begin(), workers.end()), workers.end());
  for (const std::string& name : workers)
    RETURN_IF_ERROR(CheckWorker(state, name));
  return workers;
}

// Of a folder that only the nodes can look at.
absl::Status CheckPath(const OrderCaches& command) {
  if (command.path.empty()) return absl::OkStatus();
  if (command.action != CacheAction::kStage)
    return absl::InvalidArgumentError(absl::StrCat("path: a dataset is copied from one, and ",
                                                   ToString(command.action),
                                                   " copies nothing: leave it out"));
  if (command.path.front() == '/') return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "path: expected an absolute path, the same on the nodes, found \"", command.path, "\""));
}

bool IsPendingAlready(const Worker& worker, const CacheOrdered& wanted) {
  return std::any_of(worker.cache_orders.begin(), worker.cache_orders.end(),
                     [&wanted](const CacheOrder& order) {
                       return IsPending(order) && order.failure_count == 0 &&
                              order.dataset == wanted.dataset && order.action == wanted.action &&
                              order.digest == wanted.digest && order.path == wanted.path;
                     });
}

}  // namespace

absl::string_view ToString(CacheAction action) {
  switch (action) {
    case CacheAction::kStage:
      return "STAGE";
    case CacheAction::kEvict:
      return "EVICT";
    case CacheAction::kPin:
      return "PIN";
    case CacheAction::kUnpin:
      return "UNPIN";
  }
  return "";
}

absl::string_view ToString(CacheOrderState state) {
  switch (state) {
    case CacheOrderState::kPending:
      return "PENDING";
    case CacheOrderState::kDone:
      return "DONE";
    case CacheOrderState::kFailed:
      return "FAILED";
  }
  return "";
}

absl::StatusOr<Decision> Decide(const Context& context, const OrderCaches& command) {
  const auto it = context.state.datasets.find(command.dataset);
  if (it == context.state.datasets.end())
    return absl::NotFoundError(absl::StrCat("there is no dataset ", command.dataset,
                                            "; 'assay dataset list' shows all, 'assay dataset add' "
                                            "registers one"));
  const Dataset& dataset = it->second;
  if (dataset.digest.empty())
    return absl::FailedPreconditionError(
        absl::StrCat("dataset ", dataset.id,
                     " was registered without a digest, by which caches name datasets: remove it "
                     "and add it anew"));
  RETURN_IF_ERROR(CheckPath(command));
  ASSIGN_OR_RETURN(const std::vector<std::string> workers, WorkersFor(context.state, command));
  Decision decision{.reply = CachesReply{workers}};
  for (const std::string& name : workers) {
    CacheOrdered order{.worker = name,
                       .action = command.action,
                       .dataset = dataset.id,
                       .path = command.path.empty() ? dataset.path : command.path,
                       .digest = dataset.digest};
    if (!IsPendingAlready(context.state.workers.at(name), order))
      decision.events.push_back(std::move(order));
  }
  return decision;
}

const CacheOrder* FindPending(const Worker& worker) {
  const std::vector<CacheOrder>& orders = worker.cache_orders;
  for (auto it = orders.begin(); it != orders.end(); ++it) {
    if (!IsPending(*it) || WaitsForRetry(*it)) continue;
    const bool is_held = std::any_of(orders.begin(), it, [&](const CacheOrder& before) {
      return WaitsForRetry(before) && before.dataset == it->dataset;
    });
    if (!is_held) return &*it;
  }
  return nullptr;
}

bool KnowsOrder(const std::optional<CacheOrder>& wanted, const std::optional<CacheReport>& report) {
  const bool is_at_one = report.has_value() && report->number != 0 && !report->is_done;
  if (!wanted.has_value()) return !is_at_one;
  return is_at_one && report->number == wanted->number;
}

void HearCache(const Worker& worker, const Synchronize& command, int64_t now_us,
               std::vector<Event>* events) {
  const CacheOrder* const order = FindPending(worker);
  if (order == nullptr) return;
  const std::optional<CacheReport>& report = command.report.cache;
  if (command.description.capabilities.cache_bytes <= 0) {
    events->push_back(
        CacheOrderEnded{.worker = worker.name,
                        .number = order->number,
                        .problem = "the configuration of its agent has no node_cache any more"});
  } else if (report.has_value() && report->is_done && report->number == order->number) {
    events->push_back(report->problem.empty()
                          ? CacheOrderEnded{.worker = worker.name, .number = order->number}
                          : FailTry(worker, *order, *report, now_us));
  }
}

std::vector<Event> RetryCacheOrders(const State& state, int64_t now_us) {
  std::vector<Event> events;
  for (const auto& [name, worker] : state.workers)
    for (const CacheOrder& order : worker.cache_orders)
      if (WaitsForRetry(order) && now_us >= order.retry_at_us)
        events.push_back(CacheOrderRetried{.worker = name, .number = order.number});
  return events;
}

std::optional<int64_t> NextCacheRetryUs(const Worker& worker) {
  std::optional<int64_t> next;
  for (const CacheOrder& order : worker.cache_orders)
    if (WaitsForRetry(order)) next = std::min(next.value_or(order.retry_at_us), order.retry_at_us);
  return next;
}

void ApplyCache(const RecordedEvent& record, const CacheOrdered& event, Worker* worker) {
  std::vector<CacheOrder>& orders = worker->cache_orders;
  std::erase_if(orders, [&event](const CacheOrder& order) {
    return order.dataset == event.dataset && IsAboutPin(order.action) == IsAboutPin(event.action);
  });
  orders.push_back({.number = record.seq,
                    .action = event.action,
                    .dataset = event.dataset,
                    .path = event.path,
                    .digest = event.digest,
                    .created_at_us = record.at_us});
  if (orders.size() <= kCacheOrderCountMax) return;
  const auto ended = std::find_if_not(orders.begin(), orders.end(), IsPending);
  if (ended != orders.end()) orders.erase(ended);
}

void ApplyCache(const RecordedEvent& record, const CacheOrderEnded& event, Worker* worker) {
  CacheOrder& order = GetOrder(record, event.number, worker);
  const bool is_done = event.problem.empty();
  order.state = is_done ? CacheOrderState::kDone : CacheOrderState::kFailed;
  order.reason = event.problem;
  order.ended_at_us = record.at_us;
  if (!is_done) ++order.failure_count;
}

void ApplyCache(const RecordedEvent& record, const CacheOrderPostponed& event, Worker* worker) {
  CacheOrder& order = GetOrder(record, event.number, worker);
  ++order.failure_count;
  order.reason = event.problem;
  order.retry_at_us = event.retry_at_us;
}

void ApplyCache(const RecordedEvent& record, const CacheOrderRetried& event, Worker* worker) {
  CacheOrder& order = GetOrder(record, event.number, worker);
  order.number = record.seq;
  order.retry_at_us = 0;
}

absl::Status CheckCacheReport(const std::optional<CacheReport>& report) {
  if (!report.has_value()) return absl::OkStatus();
  if (report->datasets.size() > kCachedDatasetCountMax)
    return absl::InvalidArgumentError(absl::StrCat("cache: expected at most ",
                                                   kCachedDatasetCountMax, " datasets, found ",
                                                   report->datasets.size()));
  bool is_negative = std::min({report->files, report->files_total, report->bytes,
                               report->bytes_total, report->number}) < 0;
  for (const CachedDataset& dataset : report->datasets)
    is_negative = is_negative || std::min({dataset.files, dataset.files_total, dataset.bytes,
                                           dataset.bytes_total}) < 0;
  if (is_negative) return absl::InvalidArgumentError("cache: a count is below 0");
  return absl::OkStatus();
}

}  // namespace assay::core
