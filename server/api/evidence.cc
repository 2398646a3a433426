#include "server/api/evidence.h"

#include <iterator>
#include <optional>

#include "absl/strings/string_view.h"

#include "common/status.h"

namespace assay::api {

absl::StatusOr<auth::Evidence> EvidenceOf(const grpc::ServerContextBase& context,
                                          const gate::ConnectionTable& connections) {
  std::optional<auth::Evidence> evidence = connections.Find(context.peer());
  if (!evidence.has_value()) return absl::UnauthenticatedError("a connection of unknown origin");
  const auto [first, last] = context.client_metadata().equal_range("authorization");
  if (first == last) return *std::move(evidence);
  if (std::next(first) != last)
    return absl::UnauthenticatedError("more than one authorization header: send one");
  if (!evidence->certificate_common_name.empty()) {
    return absl::UnauthenticatedError(
        "an authorization header beside a client certificate: a token is exchanged for a "
        "certificate (POST /v1/access-certificate), and calls need no header");
  }
  const absl::string_view header(first->second.data(), first->second.size());
  ASSIGN_OR_RETURN(evidence->bearer_token, auth::Authenticator::BearerToken(header));
  return *std::move(evidence);
}

}  // namespace assay::api
