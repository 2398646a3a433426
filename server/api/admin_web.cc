// How people come from the command line to the site: a code, and the token that it is worth.

#include <algorithm>
#include <optional>
#include <utility>

#include "common/secret.h"
#include "common/status.h"
#include "server/api/admin_service.h"
#include "server/api/convert.h"

namespace assay::api {
namespace {

constexpr absl::string_view kCreateWebCode = "assay.v1.AdminService/CreateWebCode";
constexpr absl::string_view kRedeemWebCode = "assay.v1.AdminService/RedeemWebCode";
constexpr absl::Duration kSessionLifetimeMax = absl::Hours(12);  // a working day

// The token that `who`'s code is worth at `now`. UNAUTHENTICATED if the token with which it was
// asked for has ended since.
absl::StatusOr<core::CreateToken> SessionToken(const Backend& backend, const auth::Identity& who,
                                               const std::string& secret, absl::Time now) {
  absl::Time end = now + kSessionLifetimeMax;
  if (!who.token_sha256.empty()) {
    ASSIGN_OR_RETURN(const Guard::Bearer bearer, backend.guard->FromToken(who.token_sha256));
    end = std::min(end, bearer.expire_time);
  }
  return core::CreateToken{.role = std::string(auth::RoleName(who.role)),
                           .principal = who.principal,
                           .organization = who.organization,
                           .secret_sha256 = TokenHash(secret),
                           .expires_at_us = absl::ToUnixMicros(end),
                           .made_by_sha256 = who.token_sha256};
}

}  // namespace

grpc::ServerUnaryReactor* AdminService::CreateWebCode(grpc::CallbackServerContext* context,
                                                      const v1::CreateWebCodeRequest* request,
                                                      v1::CreateWebCodeResponse* response) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity =
      Admit(*backend_, *context, kCreateWebCode, *request);
  if (identity.ok()) {
    response->set_code(backend_->web_codes->Create(*identity));
    SetTime(absl::ToUnixMicros(backend_->clock->Wall() + WebCodes::kLifetime),
            response->mutable_expire_time());
    response->set_url(backend_->web_url);
  }
  call.Finish(identity.status());
  return call.reactor;
}

grpc::ServerUnaryReactor* AdminService::RedeemWebCode(grpc::CallbackServerContext* context,
                                                      const v1::RedeemWebCodeRequest* request,
                                                      v1::CreateTokenResponse* response) {
  const auto call = StartUnary(context, response);
  const absl::Status admitted = Admit(*backend_, *context, kRedeemWebCode, *request).status();
  if (!admitted.ok()) {
    call.Finish(admitted);
    return call.reactor;
  }
  const std::optional<auth::Identity> who = backend_->web_codes->Redeem(request->code());
  if (!who.has_value()) {
    call.Finish(absl::PermissionDeniedError(
        "the code is unknown, used or older than a minute: 'assay web open' prints a new one"));
    return call.reactor;
  }
  const std::string secret = MakeToken();
  absl::StatusOr<core::CreateToken> command =
      SessionToken(*backend_, *who, secret, backend_->clock->Wall());
  if (!command.ok()) {
    call.Finish(command.status());
    return call.reactor;
  }
  // By whom the code is of: the log of events says that they have signed in.
  backend_->core->Post(CommandOf(*who, *std::move(command)),
                       [call, secret](absl::StatusOr<core::Reply> reply) {
                         if (!reply.ok()) return call.Finish(reply.status());
                         v1::CreateTokenResponse created;
                         *created.mutable_token() = ToProto(Expect<core::Token>(*std::move(reply)));
                         created.set_secret(secret);
                         call.Finish(absl::StatusOr<v1::CreateTokenResponse>(std::move(created)));
                       });
  return call.reactor;
}

}  // namespace assay::api
