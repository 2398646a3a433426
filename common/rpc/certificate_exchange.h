// How a client gets its certificate from a coordinator that speaks gRPC only to those who have one:
// one request over HTTPS, with a token.

#ifndef COMMON_RPC_CERTIFICATE_EXCHANGE_H_
#define COMMON_RPC_CERTIFICATE_EXCHANGE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/rpc/endpoint.h"

namespace assay {

struct CertificateExchange {
  // The coordinator, its CA, and the token; its target is host:port.
  Endpoint endpoint;
  std::string path;     // AccessCertificatePath() or WorkerCertificatePath(name)
  std::string csr_pem;  // for the key that the certificate shall be for
  absl::Duration timeout = absl::Seconds(30);
  bool is_patient = false;  // a coordinator that is away is tried again until the timeout
};

std::string AccessCertificatePath();
std::string WorkerCertificatePath(const std::string& worker);

// The certificate, PEM. UNAVAILABLE if the coordinator does not answer, or is not of that CA or not
// of that name; otherwise what it says: UNAUTHENTICATED or PERMISSION_DENIED for the token,
// INVALID_ARGUMENT for the request, FAILED_PRECONDITION if it signs nothing. Blocks.
absl::StatusOr<std::string> ExchangeForCertificate(const CertificateExchange& exchange);

}  // namespace assay

#endif  // COMMON_RPC_CERTIFICATE_EXCHANGE_H_
