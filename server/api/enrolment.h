// Certificates for those who have none yet, or whose own is about to end: workers for an enrolment
// token or a munge credential, people for an access token.

#ifndef SERVER_API_ENROLMENT_H_
#define SERVER_API_ENROLMENT_H_

#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

#include "server/api/services.h"
#include "server/auth/identity.h"

namespace assay::api {

struct WorkerCertificateRequest {
  std::string worker;
  std::string csr_pem;
  // Of enrolment, or the munge credential of a node of a job; empty: a renewal, for the worker that
  // the caller is.
  std::string token;
};
using OnCertificate = absl::AnyInvocable<void(absl::StatusOr<std::string> certificate_pem)>;

// Signs, then uses the token up; calls back once, from any thread. A request that cannot be signed
// leaves the token as it is. FAILED_PRECONDITION if enrolment is off; INVALID_ARGUMENT for the name
// or the request; PERMISSION_DENIED if the token is unknown, used or expired, or there is none, or
// for what CheckCredential (node_enrolment.h) and core::EnrolNode refuse; UNAVAILABLE for what they
// cannot say yet.
void CertifyWorker(const Backend* backend, const auth::Identity& caller,
                   const WorkerCertificateRequest& request, OnCertificate on_certificate);

// A certificate for the bearer of an access token, which ends when the token does, after twelve
// hours at the latest. UNAUTHENTICATED if the token is unknown, revoked or expired;
// FAILED_PRECONDITION and INVALID_ARGUMENT as above.
absl::StatusOr<std::string> CertifyPerson(const Backend& backend, const std::string& token,
                                          const std::string& csr_pem);

}  // namespace assay::api

#endif  // SERVER_API_ENROLMENT_H_
