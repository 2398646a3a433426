// What the gate's HTTPS endpoint answers:
//
//   POST /v1/access-certificate         a person's certificate, for an access token
//   POST /v1/worker-certificate/NAME    the certificate of worker NAME, for an enrolment token or,
//   by
//                                       a node of a Slurm job, a munge credential (ADR 0178)
//   GET  /healthz                       that the coordinator serves
//
// A token comes as "authorization: Bearer ...", the certificate request (PKCS #10, PEM) as the
// body; the reply is the certificate, or a sentence. ADR 0132 says why this is not gRPC.

#ifndef SERVER_API_CERTIFICATE_DESK_H_
#define SERVER_API_CERTIFICATE_DESK_H_

#include "server/api/services.h"
#include "server/gate/question.h"

namespace assay::api {

// Answers `question`, now or when the core has. Thread-safe; never blocks.
void AnswerQuestion(const Backend* backend, const gate::Question& question,
                    gate::OnAnswer on_answer);

}  // namespace assay::api

#endif  // SERVER_API_CERTIFICATE_DESK_H_
