#include "server/api/certificate_desk.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "common/rpc/http_status.h"
#include "server/api/enrolment.h"

namespace assay::api {
namespace {

constexpr absl::string_view kPersonTarget = "/v1/access-certificate";
constexpr absl::string_view kWorkerTarget = "/v1/worker-certificate/";
constexpr absl::string_view kHealthTarget = "/healthz";

gate::Answer AnswerOf(const Backend* backend, const gate::Question& question,
                      absl::StatusOr<std::string> certificate) {
  if (certificate.ok()) return {.http_status = 200, .body = *std::move(certificate)};
  backend->refusals->Note(question.peer, question.target, certificate.status());
  return {.http_status = HttpStatusOf(certificate.status().code()),
          .body = absl::StrCat(certificate.status().message(), "\n")};
}

}  // namespace

void AnswerQuestion(const Backend* backend, const gate::Question& question,
                    gate::OnAnswer on_answer) {
  if (question.method == "GET" && question.target == kHealthTarget)
    return on_answer({.http_status = 200, .body = "ok\n"});
  absl::string_view worker = question.target;
  const bool is_worker = absl::ConsumePrefix(&worker, kWorkerTarget);
  if (!is_worker && question.target != kPersonTarget) {
    return on_answer({.http_status = 404,
                      .body = "nothing is here: gRPC is spoken with a client certificate over "
                              "HTTP/2; see docs/security.md\n"});
  }
  if (question.method != "POST")
    return on_answer({.http_status = 405, .body = "POST a certificate request\n"});
  if (!is_worker)
    return on_answer(
        AnswerOf(backend, question, CertifyPerson(*backend, question.token, question.body)));
  CertifyWorker(backend, auth::Identity{},
                {.worker = std::string(worker), .csr_pem = question.body, .token = question.token},
                [backend, question, on_answer = std::move(on_answer)](
                    absl::StatusOr<std::string> certificate) mutable {
                  on_answer(AnswerOf(backend, question, std::move(certificate)));
                });
}

}  // namespace assay::api
