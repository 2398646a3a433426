// The certificate with which a person's commands speak to a coordinator over TCP: exchanged for the
// token when one is needed, and kept in the user's cache until it ends.

#ifndef CLI_CERTIFICATE_H_
#define CLI_CERTIFICATE_H_

#include "absl/status/statusor.h"

#include "cli/environment.h"
#include "common/rpc/endpoint.h"

namespace assay::cli {

// `endpoint` with a certificate in place of its token; as it is if it is a Unix socket.
// UNAUTHENTICATED if there is no token, or the coordinator does not take it; UNAVAILABLE if it does
// not answer; INVALID_ARGUMENT without its CA. Blocks.
//
// Kept in $XDG_CACHE_HOME/assay/certificates (~/.cache), mode 0600, by coordinator, CA and token. A
// cache that cannot be read or written is done without.
absl::StatusOr<Endpoint> WithCertificate(const Environment& environment, Endpoint endpoint);

}  // namespace assay::cli

#endif  // CLI_CERTIFICATE_H_
