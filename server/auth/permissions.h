// What each role may do: one table, a row per RPC method, a column per role. What is not in the
// table is denied.

#ifndef SERVER_AUTH_PERMISSIONS_H_
#define SERVER_AUTH_PERMISSIONS_H_

#include <span>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "server/auth/identity.h"
#include "server/core/visibility.h"

namespace assay::auth {

enum class Access {
  kDenied,
  kAllowed,
  kOwnOrganization,  // only what belongs to the caller's organisation
  kPublished,        // what is published, and what belongs to the caller's organisation
  kSelf,             // only as the worker that the caller is
};

struct PermissionRow {
  const char* method;  // assay.v1.SubmissionService/CreateSubmission
  Access public_;
  Access submitter;
  Access reviewer;
  Access operator_;
  Access worker;
};

// All rows, for tests and for the manual.
std::span<const PermissionRow> PermissionTable();

// What `role` may do with `method`, given with or without a leading slash. kDenied if there is no
// row, and to whoever has shown nothing.
Access AccessOf(Role role, absl::string_view method);

// OK if `identity` may call `method` at all. UNAUTHENTICATED if nobody is known and somebody is
// needed; else PERMISSION_DENIED, naming the caller, its role and the roles that may.
absl::Status CheckMethod(const Identity& identity, absl::string_view method);

// What `identity` may see through `method` at `now`: all by kAllowed, its own by kOwnOrganization,
// with what is published by kPublished, and nothing by anything else.
core::VisibleTo VisibleThrough(const Identity& identity, absl::string_view method, absl::Time now);

// OK if `identity` may touch what belongs to `organization` through `method`; PERMISSION_DENIED
// otherwise. That something is published does not let anybody touch it.
absl::Status CheckOrganization(const Identity& identity, absl::string_view method,
                               absl::string_view organization);

// OK if `identity` is the worker `worker` (its id, w0), as every method open to kSelf needs.
absl::Status CheckWorker(const Identity& identity, absl::string_view worker);

}  // namespace assay::auth

#endif  // SERVER_AUTH_PERMISSIONS_H_
