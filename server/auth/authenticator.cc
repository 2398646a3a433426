#include "server/auth/authenticator.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace assay::auth {
namespace {

constexpr absl::string_view kScheme = "Bearer ";
constexpr size_t kTokenLengthMax = 128;

Identity OperatorIdentity(uid_t uid) {
  return Identity{.principal = uid == 0 ? "root" : absl::StrCat("uid-", uid),
                  .role = Role::kOperator};
}

}  // namespace

Authenticator::Authenticator(uid_t daemon_user, const std::vector<LocalUser>& others) {
  for (const LocalUser& user : others)
    local_users_[user.uid] = user.identity;
  local_users_[0] = OperatorIdentity(0);
  local_users_[daemon_user] = OperatorIdentity(daemon_user);
}

absl::StatusOr<Identity> Authenticator::FromConnection(const Evidence& evidence) const {
  if (!evidence.certificate_common_name.empty())
    return Identity{.principal = evidence.certificate_common_name,
                    .role = Role::kWorker,
                    .certificate_generation = evidence.certificate_generation,
                    .certificate_end_us = evidence.certificate_end_us};
  if (!evidence.user.has_value()) return Identity{};
  const auto user = local_users_.find(*evidence.user);
  if (user != local_users_.end()) return user->second;
  return absl::PermissionDeniedError(
      absl::StrCat("user ", *evidence.user,
                   " of this host has no role: ask an operator for a "
                   "token, or to be listed under local_users in the coordinator's configuration"));
}

absl::StatusOr<std::string> Authenticator::BearerToken(absl::string_view authorization_header) {
  if (authorization_header.empty()) return std::string();
  if (!absl::StartsWithIgnoreCase(authorization_header, kScheme)) {
    return absl::UnauthenticatedError(
        "authorization header of an unknown scheme: send \"Bearer <token>\"");
  }
  const absl::string_view token =
      absl::StripAsciiWhitespace(authorization_header.substr(kScheme.size()));
  const bool is_plain = std::all_of(token.begin(), token.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (token.empty() || token.size() > kTokenLengthMax || !is_plain)
    return absl::UnauthenticatedError("malformed token: copy it whole, it starts with assay_");
  return std::string(token);
}

absl::StatusOr<Identity> Authenticator::FromToken(const std::optional<TokenRecord>& record,
                                                  absl::Time now) {
  if (!record.has_value())
    return absl::UnauthenticatedError("unknown token: ask an operator for a new one");
  if (record->is_revoked)
    return absl::UnauthenticatedError("the token was revoked: ask an operator for a new one");
  if (now >= record->expire_time) {
    return absl::UnauthenticatedError(
        absl::StrCat("the token expired at ",
                     absl::FormatTime(absl::RFC3339_sec, record->expire_time, absl::UTCTimeZone()),
                     ": ask an operator for a new one"));
  }
  return record->identity;
}

}  // namespace assay::auth
