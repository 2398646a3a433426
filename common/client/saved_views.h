// Saved views: questions to the history that the coordinator keeps under a name. Everything that
// asks blocks and fails as Client::Call does. Thread-safe.

#ifndef COMMON_CLIENT_SAVED_VIEWS_H_
#define COMMON_CLIENT_SAVED_VIEWS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "assay/v1/history_service.pb.h"

#include "common/client/client.h"
#include "common/client/json.h"

namespace assay::client {

// Those that the caller may use, by name.
absl::StatusOr<std::vector<v1::View>> ListViews(const Client& client);

// The one that `name` means: the caller's own of that name, or else the only one that is shared
// with it; AUTHOR/NAME says whose. NOT_FOUND, with those that there are; INVALID_ARGUMENT if
// several people share one of that name.
absl::StatusOr<v1::View> FindView(const Client& client, const std::string& name);

// A question as a view, and a view as a question.
v1::View ViewOfQuestion(const v1::QueryResultsRequest& question);
v1::QueryResultsRequest QuestionOfView(const v1::View& view);

// The page of the site that asks the same: "/query?kind=run&filter=converged%3Dtrue". Pure.
std::string QueryPath(const v1::View& view);

// assay.view/v1
Json ViewJson(const v1::View& view);

}  // namespace assay::client

#endif  // COMMON_CLIENT_SAVED_VIEWS_H_
