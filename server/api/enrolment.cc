#include "server/api/enrolment.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"

#include "common/munge/munge.h"
#include "common/munge/node_claim.h"
#include "common/pki.h"
#include "common/secret.h"
#include "common/status.h"
#include "server/auth/certificate_generation.h"
#include "server/auth/certificate_token.h"
#include "server/auth/permissions.h"

namespace assay::api {
namespace {

// A year, so that an agent which renews two months before the end has time to find us.
constexpr absl::Duration kWorkerLifetime = absl::Hours(24 * 366);
// A stolen one is of no use for long, also to who has no idea how to revoke.
constexpr absl::Duration kPersonLifetimeMax = absl::Hours(12);
constexpr size_t kCommonNameMax = 64;  // RFC 5280, ub-common-name

absl::Status CheckCanSign(const Backend& backend) {
  if (backend.ca.key_pem.empty()) {
    return absl::FailedPreconditionError(
        "enrolment is off: give the coordinator tls.ca_key_path, or sign the CSR by hand");
  }
  return absl::OkStatus();
}

// Cheap refusals, before anything is signed. The core decides when it redeems the token.
absl::Status CheckWorkerRequest(const Backend& backend, const auth::Identity& caller,
                                const WorkerCertificateRequest& request) {
  RETURN_IF_ERROR(CheckCanSign(backend));
  RETURN_IF_ERROR(core::CheckName("worker", request.worker));
  if (request.token.empty()) {
    if (caller.role == auth::Role::kWorker) return auth::CheckWorker(caller, request.worker);
    return absl::PermissionDeniedError(
        "no enrolment token: ask an operator for one (assay admin enrol)");
  }
  const std::optional<core::Token> token = backend.tokens->Find(TokenHash(request.token));
  const bool is_usable = token.has_value() && token->kind == core::TokenKind::kEnrol &&
                         !token->is_revoked &&
                         token->expires_at_us > absl::ToUnixMicros(backend.clock->Wall());
  if (is_usable) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "the enrolment token is unknown, used or expired: ask an operator for a new one");
}

// What a renewal gives is revoked with the certificate that it stands on. A token gives the present
// generation: were that to end before the token is redeemed, the token would end with it.
absl::StatusOr<std::string> SignWorker(const Backend& backend, const auth::Identity& caller,
                                       const WorkerCertificateRequest& request) {
  const int64_t generation = request.token.empty()
                                 ? caller.certificate_generation
                                 : backend.certificates->ValidFrom(request.worker);
  std::vector<std::string> uris;
  if (generation > 0) uris.push_back(auth::GenerationUri(generation));
  return SignCsr(backend.ca, request.csr_pem,
                 {.common_name = request.worker,
                  .uris = std::move(uris),
                  .kind = CertificateKind::kClient,
                  .validity = {.now = backend.clock->Wall(), .lifetime = kWorkerLifetime}});
}

void AnswerWhenCommitted(const Backend& backend, core::Command command, std::string certificate,
                         OnCertificate on_certificate) {
  backend.core->Post(std::move(command), [certificate = std::move(certificate),
                                          on_certificate = std::move(on_certificate)](
                                             const absl::StatusOr<core::Reply>& reply) mutable {
    if (!reply.ok()) return on_certificate(reply.status());
    on_certificate(std::move(certificate));
  });
}

// For a node of a job: the core decides by what the credential says, which has been checked.
void CertifyClaim(const Backend& backend, const WorkerCertificateRequest& request,
                  const NodeClaim& claim, OnCertificate on_certificate) {
  const absl::StatusOr<core::AllocationId> allocation = core::ParseAllocationId(claim.allocation);
  absl::StatusOr<std::string> certificate =
      allocation.ok() ? SignWorker(backend, auth::Identity{}, request) : allocation.status();
  if (!certificate.ok()) return on_certificate(std::move(certificate));
  AnswerWhenCommitted(backend,
                      {.principal = request.worker,
                       .body = core::EnrolNode{.allocation = *allocation,
                                               .job = claim.job,
                                               .node = claim.node,
                                               .worker = request.worker}},
                      *std::move(certificate), std::move(on_certificate));
}

absl::Status CheckNodeRequest(const Backend& backend, const WorkerCertificateRequest& request) {
  RETURN_IF_ERROR(CheckCanSign(backend));
  RETURN_IF_ERROR(core::CheckName("worker", request.worker));
  if (backend.nodes != nullptr) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "nodes do not enrol by munge here: set launcher.slurm.enrolment to MUNGE, or show a token");
}

void CertifyNode(const Backend* backend, const WorkerCertificateRequest& request,
                 OnCertificate on_certificate) {
  if (const absl::Status checked = CheckNodeRequest(*backend, request); !checked.ok())
    return on_certificate(checked);
  backend->nodes->Check(request.token, request.csr_pem,
                        [backend, request, on_certificate = std::move(on_certificate)](
                            const absl::StatusOr<NodeClaim>& claim) mutable {
                          if (!claim.ok()) return on_certificate(claim.status());
                          CertifyClaim(*backend, request, *claim, std::move(on_certificate));
                        });
}

}  // namespace

void CertifyWorker(const Backend* backend, const auth::Identity& caller,
                   const WorkerCertificateRequest& request, OnCertificate on_certificate) {
  if (absl::StartsWith(request.token, kMungePrefix))
    return CertifyNode(backend, request, std::move(on_certificate));
  const absl::Status checked = CheckWorkerRequest(*backend, caller, request);
  absl::StatusOr<std::string> certificate =
      checked.ok() ? SignWorker(*backend, caller, request) : checked;
  if (!certificate.ok() || request.token.empty()) return on_certificate(std::move(certificate));
  AnswerWhenCommitted(*backend,
                      {.principal = request.worker,
                       .body = core::RedeemEnrolment{.secret_sha256 = TokenHash(request.token),
                                                     .worker = request.worker}},
                      *std::move(certificate), std::move(on_certificate));
}

absl::StatusOr<std::string> CertifyPerson(const Backend& backend, const std::string& token,
                                          const std::string& csr_pem) {
  RETURN_IF_ERROR(CheckCanSign(backend));
  const std::string sha256 = TokenHash(token);
  ASSIGN_OR_RETURN(const Guard::Bearer bearer, backend.guard->FromToken(sha256));
  const absl::Time now = backend.clock->Wall();
  const absl::Duration life = bearer.expire_time - now;
  const std::string& principal = bearer.identity.principal;
  // The name is for people who look at the certificate; the token decides. It may be too long, or
  // in letters that a common name here cannot have.
  const bool is_name_usable =
      core::CheckName("principal", principal).ok() && principal.size() <= kCommonNameMax;
  return SignCsr(backend.ca, csr_pem,
                 {.common_name = is_name_usable ? principal : "bearer of a token",
                  .uris = {auth::TokenUri(sha256)},
                  .kind = CertificateKind::kClient,
                  .validity = {.now = now, .lifetime = std::min(life, kPersonLifetimeMax)}});
}

}  // namespace assay::api
