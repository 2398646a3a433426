#include "server/api/evidence.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/status.h"
#include "server/auth/certificate_generation.h"

namespace assay::api {
namespace {

// The common name of the client certificate, which TLS has verified; empty if none was shown.
absl::StatusOr<std::string> CertificateName(const grpc::ServerContextBase& context) {
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth == nullptr || !auth->IsPeerAuthenticated()) return std::string();
  const std::vector<grpc::string_ref> names = auth->FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME);
  if (names.size() == 1 && !names[0].empty()) return std::string(names[0].data(), names[0].size());
  return absl::UnauthenticatedError(
      "the client certificate does not have exactly one common name: enrol again");
}

// Of the same certificate; 0 if none was shown.
absl::StatusOr<int64_t> CertificateGeneration(const grpc::ServerContextBase& context) {
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth == nullptr || !auth->IsPeerAuthenticated()) return 0;
  std::vector<std::string> uris;
  for (const grpc::string_ref& uri : auth->FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME))
    uris.emplace_back(uri.data(), uri.size());
  return auth::GenerationOf(uris);
}

}  // namespace

absl::StatusOr<auth::Evidence> EvidenceOf(const grpc::ServerContextBase& context,
                                          const auth::PeerTable& peers) {
  auth::Evidence evidence;
  evidence.user = peers.UserOf(context.peer());
  ASSIGN_OR_RETURN(evidence.certificate_common_name, CertificateName(context));
  ASSIGN_OR_RETURN(evidence.certificate_generation, CertificateGeneration(context));
  const auto [first, last] = context.client_metadata().equal_range("authorization");
  if (first == last) return evidence;
  if (std::next(first) != last)
    return absl::UnauthenticatedError("more than one authorization header: send one");
  const absl::string_view header(first->second.data(), first->second.size());
  ASSIGN_OR_RETURN(evidence.bearer_token, auth::Authenticator::BearerToken(header));
  return evidence;
}

}  // namespace assay::api
