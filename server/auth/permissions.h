// What each role may do: one table, a row per RPC method, a column per role. What is not in the
// table is denied.

#ifndef SERVER_AUTH_PERMISSIONS_H_
#define SERVER_AUTH_PERMISSIONS_H_

#include <span>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "server/auth/identity.h"

namespace assay::auth {

enum class Access {
  kDenied,
  kAllowed,
  kOwnOrganization,  // only what belongs to the caller's organisation
  kSelf,             // only as the worker that the caller is
};

struct PermissionRow {
  const char* method;  // assay.v1.SubmissionService/CreateSubmission
  Access anonymous;
  Access submitter;
  Access reviewer;
  Access operator_;
  Access worker;
};

// All rows, for tests and for the manual.
std::span<const PermissionRow> PermissionTable();

// What `role` may do with `method`, given with or without a leading slash. kDenied if there is no
// row.
Access AccessOf(Role role, absl::string_view method);

// OK if `identity` may call `method` at all. UNAUTHENTICATED if nobody is known and somebody is
// needed; else PERMISSION_DENIED, naming the caller, its role and the roles that may.
absl::Status CheckMethod(const Identity& identity, absl::string_view method);

// OK if `identity` may touch what belongs to `organization` through `method`; PERMISSION_DENIED
// otherwise.
absl::Status CheckOrganization(const Identity& identity, absl::string_view method,
                               absl::string_view organization);

// OK if `identity` is the worker `worker` (its id, w0), as every method open to kSelf needs.
absl::Status CheckWorker(const Identity& identity, absl::string_view worker);

}  // namespace assay::auth

#endif  // SERVER_AUTH_PERMISSIONS_H_
