// Questions to the history of results, and their answers: columns of typed values instead of whole
// records.

#ifndef SERVER_CORE_HISTORY_H_
#define SERVER_CORE_HISTORY_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"

#include "common/history_fields.h"
#include "server/core/visibility.h"

namespace assay::core {

inline constexpr int32_t kHistoryPageSizeDefault = 50;
inline constexpr int32_t kHistoryPageSizeMax = 1000;

struct HistoryQuestion {
  HistoryKind kind = HistoryKind::kEntry;
  std::string filter;                   // common/filter.h; empty: all
  std::string order_by;                 // "minutes desc, id"; empty: newest first
  std::vector<std::string> columns;     // empty: the usual ones
  std::vector<std::string> group_by;    // or aggregates, or both: rows are groups
  std::vector<std::string> aggregates;  // "count", "min(minutes)", "p95(epoch_seconds)"
  int32_t page_size = 0;                // 0: kHistoryPageSizeDefault
  std::string page_token;               // next_page_token of the page before
  VisibleTo viewer;
};

struct HistoryColumn {
  std::string name;
  HistoryType type = HistoryType::kText;
  std::string unit;
};

// monostate: there is none.
using HistoryValue = std::variant<std::monostate, bool, int64_t, double, std::string,
                                  std::vector<std::string>, absl::Time>;

struct HistoryAnswer {
  std::vector<HistoryColumn> columns;
  std::vector<std::vector<HistoryValue>> rows;
  std::string next_page_token;  // empty: this is the last page
  // Of all pages, as they were counted with the first.
  int64_t total_count = 0;
  // Rows that may be seen, and which are left out only because they lack what the filter compares.
  int64_t hidden_count = 0;
  std::string hidden_reason;  // why these are, and what is not counted at all
  std::string filter;         // as it was understood
};

}  // namespace assay::core

#endif  // SERVER_CORE_HISTORY_H_
