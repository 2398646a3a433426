// The one place where calls are authenticated and authorised, before anything else happens.

#ifndef SERVER_API_GUARD_H_
#define SERVER_API_GUARD_H_

#include <grpcpp/server_context.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/clock.h"
#include "server/auth/authenticator.h"
#include "server/auth/peer_table.h"
#include "server/runtime/certificate_table.h"
#include "server/runtime/token_table.h"

namespace assay::api {

// Thread-safe; never blocks.
class Guard {
 public:
  // All must outlive this.
  Guard(const Clock* clock, const auth::Authenticator* authenticator, const auth::PeerTable* peers,
        const runtime::TokenTable* tokens, const runtime::CertificateTable* certificates)
      : clock_(clock),
        authenticator_(authenticator),
        peers_(peers),
        tokens_(tokens),
        certificates_(certificates) {}

  // Who calls, if they may call `method` ("assay.v1.AdminService/ListTokens") at all. A token goes
  // before the identity of the connection. UNAUTHENTICATED, also for a certificate that was
  // revoked, or PERMISSION_DENIED otherwise.
  absl::StatusOr<auth::Identity> Admit(const grpc::ServerContextBase& context,
                                       absl::string_view method) const;

 private:
  // Who is known by the connection.
  absl::StatusOr<auth::Identity> FromConnection(const auth::Evidence& evidence) const;

  const Clock* const clock_;
  const auth::Authenticator* const authenticator_;
  const auth::PeerTable* const peers_;
  const runtime::TokenTable* const tokens_;
  const runtime::CertificateTable* const certificates_;
};

// OK if `identity` may see `resource` of `organization` through `method`; else NOT_FOUND, as if it
// did not exist: who competes is nobody else's business.
absl::Status CheckVisible(const auth::Identity& identity, absl::string_view method,
                          absl::string_view organization, absl::string_view resource);

// The organisation to which a list must be narrowed for `identity`, who asked for `wanted` (empty:
// all). PERMISSION_DENIED if it may not see that one.
absl::StatusOr<std::string> VisibleOrganization(const auth::Identity& identity,
                                                absl::string_view method,
                                                const std::string& wanted);

}  // namespace assay::api

#endif  // SERVER_API_GUARD_H_
