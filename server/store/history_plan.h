// What a question to the history asks for, once its texts are read. Pure.

#ifndef SERVER_STORE_HISTORY_PLAN_H_
#define SERVER_STORE_HISTORY_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "common/filter.h"
#include "server/core/history.h"

namespace assay::store {

inline constexpr size_t kHistoryOrdersMax = 4;
inline constexpr size_t kHistoryGroupsMax = 8;  // a series of sets is told by as many
inline constexpr size_t kHistoryColumnsMax = 64;
inline constexpr size_t kHistoryAggregatesMax = 16;

// A field, and the key where it is a map.
struct HistoryTerm {
  const HistoryField* field = nullptr;
  std::string key;
};

// "minutes", "hyperparameters.opt_name"
std::string ToString(const HistoryTerm& term);

struct HistoryAggregate {
  enum class Function { kCount, kMin, kMax, kMean, kSum, kPercentile };
  Function function = Function::kCount;
  double percentile = 0;  // 0 to 100
  HistoryTerm term;       // of kCount none: rows
  std::string text;       // "p95(minutes)"
};

struct HistoryPlan {
  HistoryKind kind = HistoryKind::kEntry;
  FilterNode filter;
  // What rows are made of: fields, or groups with what is said of each.
  std::vector<HistoryTerm> columns;
  bool is_grouped = false;
  std::vector<HistoryTerm> groups;
  std::vector<HistoryAggregate> aggregates;
  // By which fields, or by which column of a group.
  struct Order {
    HistoryTerm term;   // of rows
    size_t column = 0;  // of groups: among groups, then aggregates
    bool is_descending = false;
  };
  std::vector<Order> orders;
  int32_t page_size = core::kHistoryPageSizeDefault;
  bool is_private = false;  // names a field that is (HistoryField::is_private)
  std::string token_hash;   // of all that decides which row follows which
};

// INVALID_ARGUMENT, with the place, what is wrong there and what would be right.
absl::StatusOr<HistoryPlan> MakeHistoryPlan(const core::HistoryQuestion& question);

}  // namespace assay::store

#endif  // SERVER_STORE_HISTORY_PLAN_H_
