// Submissions that borrow hyperparameters: what the rules say of them before the core is asked.

#ifndef SERVER_API_BORROWING_H_
#define SERVER_API_BORROWING_H_

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/api/services.h"
#include "server/auth/identity.h"
#include "server/runtime/rule_book.h"

namespace assay::api {

// Completes a plan with what the rules say about its borrowing: findings and the record. `next` is
// called exactly once, with the plan as it is where its spec borrows nothing; then at once, else on
// the query thread. NOT_FOUND for an entry that does not exist, or for an original one that
// `identity` may not see through `method`. The lender need not be visible: whoever has its values
// has been shown them. But then findings tell nothing of it.
void WithBorrowing(const Backend* backend, const auth::Identity& identity, absl::string_view method,
                   runtime::Plan plan,
                   absl::AnyInvocable<void(absl::StatusOr<runtime::Plan>)> next);

}  // namespace assay::api

#endif  // SERVER_API_BORROWING_H_
