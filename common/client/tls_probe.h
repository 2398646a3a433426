// Whether a port is reached, and what certificate is shown there.

#ifndef COMMON_CLIENT_TLS_PROBE_H_
#define COMMON_CLIENT_TLS_PROBE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace assay::client {

// Until when the certificate is valid that a server of TLS shows at `address`, host:port. The
// server is not verified, and nothing is sent to it but the handshake's first words. Blocks, for
// `timeout` at most for each address that the host has and again for the handshake.
// INVALID_ARGUMENT for what is no address; UNAVAILABLE, with the cause, if it is not reached or
// speaks no TLS.
absl::StatusOr<absl::Time> ProbeCertificateEnd(const std::string& address, absl::Duration timeout);

}  // namespace assay::client

#endif  // COMMON_CLIENT_TLS_PROBE_H_
