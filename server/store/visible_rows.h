// core::SightOf as a condition on rows, for statements that read many. They join `disclosures`,
// which has a row for each submission, or a table with columns of the same names and values.
// Whoever changes one changes the other: tests/server/store/visible_rows_test.cc compares them.

#ifndef SERVER_STORE_VISIBLE_ROWS_H_
#define SERVER_STORE_VISIBLE_ROWS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/strings/substitute.h"

#include "server/core/visibility.h"

namespace assay::store {

// How many parameters the condition takes.
inline constexpr int kVisibleParameterCount = 3;

// The condition, in parentheses, about the columns organization and published_at_us of `table` (a
// table of these columns, or its alias). It takes the parameters ?first, ?first+1 and ?first+2:
// the members of VisibleParameters in their order.
inline std::string VisibleRows(absl::string_view table, int first) {
  return absl::Substitute(
      "(?$1 = 1 OR (?$2 <> '' AND INSTR('+' || $0.organization || '+', '+' || ?$2 || '+') > 0) "
      "OR ($0.published_at_us > 0 AND $0.published_at_us <= ?$3))",
      table, first, first + 1, first + 2);
}

// What is bound to it.
struct VisibleParameters {
  explicit VisibleParameters(const core::VisibleTo& viewer)
      : sees_all(viewer.sees_all),
        organization(viewer.organization),
        published_until_us(viewer.sees_published ? viewer.now_us : 0) {}

  bool sees_all;
  std::string organization;
  int64_t published_until_us;  // 0: nothing because it is published
};

}  // namespace assay::store

#endif  // SERVER_STORE_VISIBLE_ROWS_H_
