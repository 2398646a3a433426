#include "server/api/guard.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/secret.h"
#include "common/status.h"
#include "server/api/evidence.h"
#include "server/auth/permissions.h"

namespace assay::api {
namespace {

// An ENROL token is no identity: it can only be redeemed.
std::optional<auth::TokenRecord> RecordOf(const std::optional<core::Token>& token) {
  if (!token.has_value() || token->kind != core::TokenKind::kAccess) return std::nullopt;
  const std::optional<auth::Role> role = auth::ParseRole(token->role);
  if (!role.has_value()) return std::nullopt;
  return auth::TokenRecord{.identity = {.principal = token->principal,
                                        .role = *role,
                                        .organization = token->organization},
                           .expire_time = absl::FromUnixMicros(token->expires_at_us),
                           .is_revoked = token->is_revoked};
}

}  // namespace

absl::StatusOr<Guard::Bearer> Guard::FromToken(const std::string& token_sha256) const {
  const std::optional<auth::TokenRecord> record = RecordOf(tokens_->Find(token_sha256));
  ASSIGN_OR_RETURN(auth::Identity identity, auth::Authenticator::FromToken(record, clock_->Wall()));
  identity.token_sha256 = token_sha256;
  return Bearer{.identity = std::move(identity), .expire_time = record->expire_time};
}

std::string Guard::PeerOf(const grpc::ServerContextBase& context) const {
  const std::optional<auth::Evidence> evidence = connections_->Find(context.peer());
  return evidence.has_value() ? gate::ConnectionTable::PeerOf(*evidence) : context.peer();
}

absl::StatusOr<auth::Identity> Guard::FromConnection(const auth::Evidence& evidence) const {
  if (!evidence.certificate_token_sha256.empty()) {
    ASSIGN_OR_RETURN(Bearer bearer, FromToken(evidence.certificate_token_sha256));
    return std::move(bearer.identity);
  }
  ASSIGN_OR_RETURN(auth::Identity identity, authenticator_->FromConnection(evidence));
  if (identity.role == auth::Role::kAnonymous)
    return absl::UnauthenticatedError("the connection shows nobody");
  RETURN_IF_ERROR(Recheck(identity));
  return identity;
}

absl::Status Guard::Recheck(const auth::Identity& identity) const {
  if (!identity.token_sha256.empty()) return FromToken(identity.token_sha256).status();
  if (identity.role != auth::Role::kWorker) return absl::OkStatus();
  return core::CheckCertificate(identity.principal, identity.certificate_generation,
                                certificates_->ValidFrom(identity.principal));
}

absl::StatusOr<auth::Identity> Guard::Identify(const grpc::ServerContextBase& context) const {
  ASSIGN_OR_RETURN(const auth::Evidence evidence, EvidenceOf(context, *connections_));
  if (evidence.bearer_token.empty()) return FromConnection(evidence);
  ASSIGN_OR_RETURN(Bearer bearer, FromToken(TokenHash(evidence.bearer_token)));
  return std::move(bearer.identity);
}

}  // namespace assay::api
