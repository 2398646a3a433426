// Questions to the history of results, and their answers as JSON. Everything that asks blocks and
// fails as Client::Call does. Thread-safe.

#ifndef COMMON_CLIENT_HISTORY_H_
#define COMMON_CLIENT_HISTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "assay/v1/history_service.pb.h"

#include "common/client/client.h"
#include "common/client/json.h"
#include "common/history_fields.h"

namespace assay::client {

v1::QueryResultsRequest::Kind ProtoOf(HistoryKind kind);

// Up to `limit` rows, page by page. An error of `take` ends it.
absl::Status ForEachPage(const Client& client, v1::QueryResultsRequest request, int64_t limit,
                         absl::FunctionRef<absl::Status(v1::QueryResultsResponse page)> take);

// Up to `limit` rows, over as many pages as that takes, in one response; its next_page_token is
// set if there are more.
absl::StatusOr<v1::QueryResultsResponse> AskHistory(const Client& client,
                                                    v1::QueryResultsRequest request, int64_t limit);

// Which entries or runs match a filter.
struct MatchQuestion {
  v1::QueryResultsRequest::Kind kind = v1::QueryResultsRequest::ENTRY;
  std::string filter;
  std::string order_by = {};  // empty: newest first
  int64_t limit = 0;          // at least 1
};
struct Matches {
  std::vector<std::string> ids;  // "e-42", "r-7"; up to `limit`
  int64_t total_count = 0;
  std::string filter;  // as the coordinator has understood it
};
absl::StatusOr<Matches> FindMatches(const Client& client, const MatchQuestion& question);

// A column's name for files, which ends in its unit: minutes, batch_samples, p95_epoch_seconds.
std::string ExportName(absl::string_view column, absl::string_view unit);
std::string ExportName(const v1::QueryColumn& column);

// A value as JSON; times as RFC 3339 in UTC; null where there is none.
Json ValueJson(const v1::QueryValue& value);

// An object for each row, by export names, without what it lacks.
Json RowsJson(const v1::QueryResultsResponse& response);

// OK if every round that `filter` demands by its name is one that the coordinator knows or has
// entries of. NOT_FOUND, with those that there are: to be asked where nothing has matched.
absl::Status CheckRounds(const Client& client, const std::vector<std::string>& rounds);

}  // namespace assay::client

#endif  // COMMON_CLIENT_HISTORY_H_
