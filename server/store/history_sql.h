// Questions to the history as SQL: text that is ours, and values that are bound. Nothing that a
// caller has written becomes part of the text. Pure.

#ifndef SERVER_STORE_HISTORY_SQL_H_
#define SERVER_STORE_HISTORY_SQL_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/filter.h"
#include "server/core/history.h"
#include "server/store/history_plan.h"
#include "server/store/sqlite.h"

namespace assay::store {

// SQL with a ? for each of `values`, in order.
struct SqlText {
  std::string sql;
  std::vector<SqlValue> values;

  SqlText& Add(absl::string_view text) {
    sql.append(text.data(), text.size());
    return *this;
  }
  SqlText& Add(const SqlText& other) {
    sql += other.sql;
    values.insert(values.end(), other.values.begin(), other.values.end());
    return *this;
  }
  SqlText& Bind(SqlValue value) {
    sql += "?";
    values.push_back(std::move(value));
    return *this;
  }
};

// What NOT makes of a comparison with what a row does not have.
enum class NotOfAbsent {
  kTrue,     // as common/filter says: the filter itself
  kUnknown,  // then the whole is NULL exactly where it hangs on what is not there
};

// The condition that `filter` is. AND and OR leave NULL where they cannot tell.
SqlText FilterSql(HistoryKind kind, const FilterNode& filter, NotOfAbsent not_of_absent);

// Rows of which the viewer may see what the plan shows, as core::SightOf says for each (of private
// fields, with Sight::kWhole): tests/server/store/history_test.cc compares them. "1" if that is
// all.
SqlText VisibleSql(const HistoryPlan& plan, const core::VisibleTo& viewer);

// The value of a field as one of SqlValue, null if there is none.
SqlText ValueSql(HistoryKind kind, const HistoryTerm& term);

// Where a page ended: the values of plan.orders, then those of the tie-break.
using HistoryPosition = std::vector<SqlValue>;

// Rows of a plan, first its columns, then what makes their position. After `position` if it is not
// empty; one more than plan.page_size.
SqlText RowsSql(const HistoryPlan& plan, const core::VisibleTo& viewer,
                const HistoryPosition& position);

// One row: how many match, and how many do not only because they lack what is compared.
SqlText CountSql(const HistoryPlan& plan, const core::VisibleTo& viewer);

// A row for each group, at most `limit`: its groups, then its aggregates; null for percentiles.
SqlText GroupsSql(const HistoryPlan& plan, const core::VisibleTo& viewer, int64_t limit);

// Groups and value of each row that has the number which `aggregate` is about.
SqlText GroupValuesSql(const HistoryPlan& plan, const core::VisibleTo& viewer,
                       const HistoryAggregate& aggregate);

}  // namespace assay::store

#endif  // SERVER_STORE_HISTORY_SQL_H_
