// Which certificates of a worker are the later ones: a number in the certificate, as a URI among
// its subject's alternative names. Revoking a worker's certificates raises the number that is asked
// for.

#ifndef SERVER_AUTH_CERTIFICATE_GENERATION_H_
#define SERVER_AUTH_CERTIFICATE_GENERATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace assay::auth {

// "urn:assay:certificate-generation:3"
std::string GenerationUri(int64_t generation);

// The generation of a certificate with these URIs; 0 if none of them says. UNAUTHENTICATED if one
// of ours is malformed, or there are several.
absl::StatusOr<int64_t> GenerationOf(const std::vector<std::string>& uris);

}  // namespace assay::auth

#endif  // SERVER_AUTH_CERTIFICATE_GENERATION_H_
