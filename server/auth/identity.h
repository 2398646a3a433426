// Who is calling, once that is known: a name for the audit trail, a role, and an organisation.

#ifndef SERVER_AUTH_IDENTITY_H_
#define SERVER_AUTH_IDENTITY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace assay::auth {

enum class Role {
  kAnonymous,  // has shown nothing, and may do nothing over gRPC
  kPublic,     // reads what is published: a site that shows it to anybody
  kSubmitter,  // acts for its organisation, and reads what is published
  kReviewer,   // reads everything
  kOperator,   // runs the service
  kWorker,     // an agent; speaks for itself only
};

// "submitter" and so on, as in configuration and tokens.
absl::string_view RoleName(Role role);

// The role of that name; nullopt for anything else. "anonymous" is not a role one can be given.
std::optional<Role> ParseRole(absl::string_view name);

struct Identity {
  std::string principal;  // alice; the worker's name; uid-1000; empty if anonymous
  Role role = Role::kAnonymous;
  std::string organization;            // of a submitter; empty otherwise
  int64_t certificate_generation = 0;  // of the certificate that a worker has shown
  int64_t certificate_end_us = 0;      // of the same; 0: not told
  std::string token_sha256;            // of the token that a person has shown; empty otherwise

  bool operator==(const Identity&) const = default;
};

}  // namespace assay::auth

#endif  // SERVER_AUTH_IDENTITY_H_
