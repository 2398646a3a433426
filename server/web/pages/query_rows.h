// Answers of the history as they come: rows of any kind, and groups with their statistics.

#ifndef SERVER_WEB_PAGES_QUERY_ROWS_H_
#define SERVER_WEB_PAGES_QUERY_ROWS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "assay/v1/history_service.pb.h"

#include "server/web/html.h"
#include "server/web/page.h"

namespace assay::web {

// The question of an address or of a form: kind, filter, order, columns, group_by, aggregate. Lists
// may have commas, or be there several times. INVALID_ARGUMENT, with the kinds that there are, for
// one that is none.
absl::StatusOr<v1::View> QuestionOf(const Fields& fields);

// What stands above every question: a tab for each kind of rows.
Html QueryHead(absl::string_view kind);

// The page of such a question, with a form to ask another one, a chart of the first statistic of
// groups, and `links` below. Blocks; errors are the coordinator's.
absl::StatusOr<Response> RowsPage(const Context& context, const Request& request,
                                  const v1::View& question, const Html& links);

}  // namespace assay::web

#endif  // SERVER_WEB_PAGES_QUERY_ROWS_H_
