// A person's certificate names the token that it was given for, as a URI among the alternative
// names of its subject: what its owner may do is looked up there at every call, and ends with the
// token.

#ifndef SERVER_AUTH_CERTIFICATE_TOKEN_H_
#define SERVER_AUTH_CERTIFICATE_TOKEN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace assay::auth {

// "urn:assay:token-sha256:<secret_sha256>". The hash of 160 random bits gives nothing away.
std::string TokenUri(absl::string_view secret_sha256);

// The hash that one of `uris` names, 64 hexadecimal digits; empty if none does, as in a worker's
// certificate. UNAUTHENTICATED if it is not one hash, said once.
absl::StatusOr<std::string> TokenSha256Of(const std::vector<std::string>& uris);

}  // namespace assay::auth

#endif  // SERVER_AUTH_CERTIFICATE_TOKEN_H_
