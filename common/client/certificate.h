// The certificate with which a person's program speaks to a coordinator over TCP: exchanged for the
// token when one is needed, and kept in a cache until it ends.

#ifndef COMMON_CLIENT_CERTIFICATE_H_
#define COMMON_CLIENT_CERTIFICATE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/rpc/endpoint.h"

namespace assay::client {

// Whether a coordinator that is away is waited for.
enum class Patience {
  kRetry,  // for up to Client::kRetryFor
  kNone,   // one attempt
};

// `endpoint` with a certificate in place of its token; as it is if it is a Unix socket.
// UNAUTHENTICATED if there is no token, or the coordinator does not take it; UNAVAILABLE if it does
// not answer; INVALID_ARGUMENT without its CA. Blocks, for up to Client::kRetryFor.
//
// Kept in `cache_directory`/certificates, mode 0600, by coordinator, CA and token; a pair that
// lasts five minutes from `now` on is used again. A cache that cannot be read or written is done
// without, and so is an empty `cache_directory`. Processes may share a cache.
absl::StatusOr<Endpoint> WithCertificate(const std::string& cache_directory, absl::Time now,
                                         Endpoint endpoint, Patience patience = Patience::kRetry);

}  // namespace assay::client

#endif  // COMMON_CLIENT_CERTIFICATE_H_
