#include "server/auth/identity.h"

namespace assay::auth {

absl::string_view RoleName(Role role) {
  switch (role) {
    case Role::kAnonymous:
      return "anonymous";
    case Role::kPublic:
      return "public";
    case Role::kSubmitter:
      return "submitter";
    case Role::kReviewer:
      return "reviewer";
    case Role::kOperator:
      return "operator";
    case Role::kWorker:
      return "worker";
  }
  return "";
}

std::optional<Role> ParseRole(absl::string_view name) {
  for (const Role role :
       {Role::kPublic, Role::kSubmitter, Role::kReviewer, Role::kOperator, Role::kWorker}) {
    if (RoleName(role) == name) return role;
  }
  return std::nullopt;
}

}  // namespace assay::auth
