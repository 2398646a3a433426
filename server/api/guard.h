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
#include "server/gate/connection_table.h"
#include "server/runtime/certificate_table.h"
#include "server/runtime/token_table.h"

namespace assay::api {

// Thread-safe; never blocks.
class Guard {
 public:
  // All must outlive this.
  Guard(const Clock* clock, const auth::Authenticator* authenticator,
        const gate::ConnectionTable* connections, const runtime::TokenTable* tokens,
        const runtime::CertificateTable* certificates)
      : clock_(clock),
        authenticator_(authenticator),
        connections_(connections),
        tokens_(tokens),
        certificates_(certificates) {}

  // Who calls. On the Unix socket a token goes before the identity of the connection.
  // UNAUTHENTICATED, also for what was revoked or has expired; PERMISSION_DENIED for a local user
  // who has no role.
  absl::StatusOr<auth::Identity> Identify(const grpc::ServerContextBase& context) const;

  // Who is known by the connection alone. UNAUTHENTICATED if nobody is, or what it has shown was
  // revoked or has expired; PERMISSION_DENIED for a local user who has no role.
  absl::StatusOr<auth::Identity> FromConnection(const auth::Evidence& evidence) const;

  // The bearer of an access token with this hash, and when the token ends. UNAUTHENTICATED.
  struct Bearer {
    auth::Identity identity;
    absl::Time expire_time;
  };
  absl::StatusOr<Bearer> FromToken(const std::string& token_sha256) const;

  // Who is behind the connection of a call, for the log: "token 5f3a90b1 of alice", "uid 1000".
  std::string PeerOf(const grpc::ServerContextBase& context) const;

  // OK while what `identity` was once admitted for holds; else why it does not any more. For calls
  // that last.
  absl::Status Recheck(const auth::Identity& identity) const;

 private:
  const Clock* const clock_;
  const auth::Authenticator* const authenticator_;
  const gate::ConnectionTable* const connections_;
  const runtime::TokenTable* const tokens_;
  const runtime::CertificateTable* const certificates_;
};

}  // namespace assay::api

#endif  // SERVER_API_GUARD_H_
