// What a client's certificate says of its owner.

#ifndef SERVER_GATE_CERTIFICATE_EVIDENCE_H_
#define SERVER_GATE_CERTIFICATE_EVIDENCE_H_

#include <openssl/x509.h>

#include "absl/status/statusor.h"

#include "server/auth/authenticator.h"

namespace assay::gate {

// Of a certificate that the handshake has verified. UNAUTHENTICATED if it does not say exactly one
// common name, or says its generation or its token other than once and well-formed.
absl::StatusOr<auth::Evidence> EvidenceOfCertificate(X509* certificate);

}  // namespace assay::gate

#endif  // SERVER_GATE_CERTIFICATE_EVIDENCE_H_
