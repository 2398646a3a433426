// Turns what a connection and a call show about their sender into an identity.

#ifndef SERVER_AUTH_AUTHENTICATOR_H_
#define SERVER_AUTH_AUTHENTICATOR_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "server/auth/identity.h"

namespace assay::auth {

// What the transport knows of a caller; each part may be missing. All but the bearer token belong
// to the connection.
struct Evidence {
  std::optional<uid_t> user;             // of the process behind a Unix socket, from the kernel
  std::string certificate_common_name;   // of a client certificate that our CA signed
  int64_t certificate_generation = 0;    // of the same; see certificate_generation.h
  std::string certificate_token_sha256;  // of a person's; see certificate_token.h
  int64_t certificate_end_us = 0;        // when it ends to be valid; 0: not told
  std::string bearer_token;              // from the header "authorization: Bearer <token>"
};

// What is on record about a token; its text is not.
struct TokenRecord {
  Identity identity;
  absl::Time expire_time;
  bool is_revoked = false;
};

// A user of this host and what it may do through the Unix socket.
struct LocalUser {
  uid_t uid = 0;
  Identity identity;
};

// Thread-safe: constant after construction.
class Authenticator {
 public:
  // `daemon_user` and root are operators; `others` are what the configuration says.
  Authenticator(uid_t daemon_user, const std::vector<LocalUser>& others);

  // Who `evidence` shows, tokens aside: a worker by its certificate, a local user by its uid, or
  // else nobody (kAnonymous). PERMISSION_DENIED for a local user who is not listed. Whether the
  // certificate was revoked, or is a person's, is for the caller to look up.
  absl::StatusOr<Identity> FromConnection(const Evidence& evidence) const;

  // The token of an authorization header; empty if there is none.
  // UNAUTHENTICATED if the header is of another scheme or cannot be a token of ours.
  static absl::StatusOr<std::string> BearerToken(absl::string_view authorization_header);

  // Who presents a token with `record` on file; nullopt means none is. UNAUTHENTICATED, without
  // saying more to the caller than it needs, if it is unknown, revoked or expired at `now`.
  static absl::StatusOr<Identity> FromToken(const std::optional<TokenRecord>& record,
                                            absl::Time now);

 private:
  absl::flat_hash_map<uid_t, Identity> local_users_;
};

}  // namespace assay::auth

#endif  // SERVER_AUTH_AUTHENTICATOR_H_
