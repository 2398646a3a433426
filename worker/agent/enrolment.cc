#include "worker/agent/enrolment.h"

#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "assay/v1/worker_service.grpc.pb.h"

#include "common/file.h"
#include "common/log.h"
#include "common/munge/munge.h"
#include "common/munge/node_claim.h"
#include "common/pki.h"
#include "common/rpc/certificate_exchange.h"
#include "common/rpc/status_grpc.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/agent/back_off.h"

namespace assay::agent {
namespace {

constexpr absl::Duration kEnrolTimeout = absl::Seconds(30);
// In a job that runs, until the coordinator knows it: it looks every 10 s, and gives nodes up whose
// agents have not come after 5 min.
constexpr absl::Duration kJobPatience = absl::Minutes(6);
// Two months of the year that the coordinator gives: an agent is restarted more often than that.
constexpr absl::Duration kRenewBefore = absl::Hours(24 * 60);

// Certificate and key lie in one file, so that no crash parts a new one from an old one.
std::string IdentityDirectory(const v1::WorkerConfig& config) {
  return JoinPath(config.data_directory(), "identity");
}
std::string IdentityPath(const v1::WorkerConfig& config) {
  return JoinPath(IdentityDirectory(config), "identity.pem");
}

absl::StatusOr<std::string> TokenOf(const v1::WorkerConfig& config) {
  if (config.enrolment_token_path().empty()) return config.enrolment_token();
  const absl::StatusOr<std::string> text = ReadFile(config.enrolment_token_path());
  if (text.status().code() == absl::StatusCode::kNotFound) return std::string();
  RETURN_IF_ERROR(text.status());
  return std::string(absl::StripAsciiWhitespace(*text));
}

// The stored pair, if it is whole and its time has not passed.
absl::StatusOr<CertificateAndKey> LoadIdentity(const std::string& path, const Clock& clock) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  absl::StatusOr<CertificateAndKey> pair = ParsePair(text);
  RETURN_IF_ERROR(Annotate(pair.status(), path));
  ASSIGN_OR_RETURN(const absl::Time end, NotAfter(pair->certificate_pem));
  if (end <= clock.Wall()) {
    return absl::FailedPreconditionError(absl::StrCat(path, " ended at ", absl::FormatTime(end)));
  }
  return pair;
}

bool IsLocal(const Endpoint& endpoint) {
  return absl::StartsWith(endpoint.target, "unix:");
}

// From who knows us already: by the certificate that is to be renewed, or by the kernel's word.
absl::StatusOr<std::string> AskAsKnown(const std::string& worker, const Endpoint& endpoint,
                                       const std::string& token, const std::string& csr_pem) {
  ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, MakeChannel(endpoint));
  const auto stub = v1::EnrolmentService::NewStub(channel);
  v1::EnrolRequest request;
  request.set_token(token);
  request.set_worker(worker);
  request.set_csr_pem(csr_pem);
  grpc::ClientContext context;
  PrepareCall(endpoint, kEnrolTimeout, &context);
  context.set_wait_for_ready(true);  // a coordinator that is just starting
  v1::EnrolResponse response;
  RETURN_IF_ERROR(FromGrpc(stub->Enrol(&context, request, &response)));
  return response.certificate_pem();
}

absl::StatusOr<std::string> RequestCertificate(const std::string& worker, const Endpoint& endpoint,
                                               const std::string& token,
                                               const std::string& csr_pem) {
  absl::StatusOr<std::string> certificate;
  if (token.empty() || IsLocal(endpoint)) {
    certificate = AskAsKnown(worker, endpoint, token, csr_pem);
  } else {
    CertificateExchange exchange = {.endpoint = endpoint,
                                    .path = WorkerCertificatePath(worker),
                                    .csr_pem = csr_pem,
                                    .timeout = kEnrolTimeout,
                                    .is_patient = true};
    exchange.endpoint.token = token;
    certificate = ExchangeForCertificate(exchange);
  }
  RETURN_IF_ERROR(Annotate(certificate.status(), absl::StrCat("enrolment at ", endpoint.target)));
  return certificate;
}

std::string LabelOf(const v1::WorkerConfig& config, const char* name) {
  const auto it = config.labels().find(name);
  return it == config.labels().end() ? "" : it->second;
}

// What a node of a job shows: of which it is, and that this request is its own.
absl::StatusOr<std::string> MakeCredential(const v1::WorkerConfig& config,
                                           const std::string& csr_pem) {
  return MungeEncode(config.munge().socket(), config.munge().coordinator_uid(),
                     NodeClaimText({.allocation = LabelOf(config, "allocation"),
                                    .job = LabelOf(config, "slurm_job"),
                                    .node = LabelOf(config, "node"),
                                    .request_sha256 = Sha256Hex(csr_pem)}));
}

// Asks until the coordinator knows that the job runs. Each time by another credential: one serves
// once.
absl::StatusOr<std::string> RequestByMunge(const v1::WorkerConfig& config, const Endpoint& endpoint,
                                           const std::string& csr_pem) {
  CertificateExchange exchange = {.endpoint = endpoint,
                                  .path = WorkerCertificatePath(config.name()),
                                  .csr_pem = csr_pem,
                                  .timeout = kEnrolTimeout};
  const absl::Time deadline = absl::Now() + kJobPatience;
  for (int attempt = 1;; ++attempt) {
    ASSIGN_OR_RETURN(exchange.endpoint.token, MakeCredential(config, csr_pem));
    absl::StatusOr<std::string> certificate = ExchangeForCertificate(exchange);
    const absl::Duration pause = BackOff(attempt, RandomShare());
    if (!absl::IsUnavailable(certificate.status()) || absl::Now() + pause >= deadline) {
      RETURN_IF_ERROR(
          Annotate(certificate.status(), absl::StrCat("enrolment by munge at ", endpoint.target)));
      return certificate;
    }
    LOG(INFO) << "not enrolled yet worker=" << config.name()
              << " status=" << Quoted(certificate.status());
    absl::SleepFor(pause);
  }
}

// A new key and certificate, by munge, for the token or, if there is neither, on the strength of
// the old pair.
absl::StatusOr<CertificateAndKey> Enrol(const v1::WorkerConfig& config, const Endpoint& endpoint,
                                        const std::string& token) {
  const std::string directory = IdentityDirectory(config);
  RETURN_IF_ERROR(MakeDirectories(directory));
  if (chmod(directory.c_str(), 0700) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot protect ", directory));
  ASSIGN_OR_RETURN(KeyAndCsr made, MakeKeyAndCsr(config.name()));
  CertificateAndKey pair{.certificate_pem = {}, .key_pem = std::move(made.key_pem)};
  const bool is_by_munge = config.has_munge() && endpoint.certificate_pem.empty();
  ASSIGN_OR_RETURN(pair.certificate_pem,
                   is_by_munge ? RequestByMunge(config, endpoint, made.csr_pem)
                               : RequestCertificate(config.name(), endpoint, token, made.csr_pem));
  RETURN_IF_ERROR(CheckPair(pair));
  RETURN_IF_ERROR(WriteFileAtomic(IdentityPath(config), PairText(pair), kPrivateFile));
  LOG(INFO) << "enrolled worker=" << config.name();
  return pair;
}

// The coordinator, as one reaches it who cannot yet say who he is.
absl::StatusOr<Endpoint> Anonymous(const v1::WorkerConfig& config) {
  Endpoint endpoint{.target = config.server_address()};
  if (IsLocal(endpoint)) return endpoint;
  endpoint.ca_pem = config.ca_certificate();
  if (!endpoint.ca_pem.empty()) return endpoint;
  ASSIGN_OR_RETURN(endpoint.ca_pem, ReadFile(config.ca_certificate_path()));
  return endpoint;
}

// A failure is no reason to stop: the old pair still serves.
CertificateAndKey RenewIfDue(CertificateAndKey pair, const v1::WorkerConfig& config,
                             Endpoint endpoint, const Clock& clock) {
  const absl::StatusOr<absl::Time> end = NotAfter(pair.certificate_pem);
  if (!end.ok() || *end - clock.Wall() > kRenewBefore) return pair;
  endpoint.certificate_pem = pair.certificate_pem;
  endpoint.key_pem = pair.key_pem;
  absl::StatusOr<CertificateAndKey> renewed = Enrol(config, endpoint, /*token=*/"");
  if (renewed.ok()) return *std::move(renewed);
  LOG(WARNING) << "certificate not renewed, ends at=" << absl::FormatTime(*end) << ": "
               << renewed.status();
  return pair;
}

}  // namespace

absl::Time RenewalTime(const Endpoint& endpoint, const Clock& clock) {
  const absl::StatusOr<absl::Time> end = NotAfter(endpoint.certificate_pem);
  if (!end.ok()) return absl::InfiniteFuture();
  return std::max(*end - kRenewBefore, clock.Wall() + absl::Hours(1));
}

absl::StatusOr<Endpoint> EnrolAgain(const v1::WorkerConfig& config) {
  if (config.has_munge())
    return absl::FailedPreconditionError(absl::StrCat(
        "the coordinator refuses the certificate of ", config.name(),
        ", and a node of a job enrols once: release its allocation (assay allocation release)"));
  ASSIGN_OR_RETURN(Endpoint endpoint, Anonymous(config));
  ASSIGN_OR_RETURN(const std::string token, TokenOf(config));
  const std::string remedy =
      absl::StrCat("the coordinator refuses this node's certificate: ask an ",
                   "operator for a new token (assay admin enrol ", config.name(),
                   "), put it in enrolment_token_path");
  if (token.empty()) return absl::FailedPreconditionError(remedy);
  const absl::StatusOr<CertificateAndKey> pair = Enrol(config, endpoint, token);
  RETURN_IF_ERROR(Annotate(pair.status(), remedy));
  endpoint.certificate_pem = pair->certificate_pem;
  endpoint.key_pem = pair->key_pem;
  return endpoint;
}

absl::StatusOr<Endpoint> LoadOrEnrol(const v1::WorkerConfig& config, const Clock& clock) {
  ASSIGN_OR_RETURN(Endpoint endpoint, Anonymous(config));
  const bool is_local = IsLocal(endpoint);
  absl::StatusOr<CertificateAndKey> pair = LoadIdentity(IdentityPath(config), clock);
  if (!pair.ok()) {
    ASSIGN_OR_RETURN(const std::string token, TokenOf(config));
    if (token.empty() && is_local) return endpoint;
    if (token.empty() && !config.has_munge()) {
      return absl::FailedPreconditionError(
          absl::StrCat("no usable certificate (", pair.status().message(),
                       ") and no enrolment token: ask an operator for one (assay admin enrol) "
                       "and name it in enrolment_token_path"));
    }
    pair = Enrol(config, endpoint, token);
  } else {
    pair = RenewIfDue(*std::move(pair), config, endpoint, clock);
  }
  RETURN_IF_ERROR(pair.status());
  endpoint.certificate_pem = pair->certificate_pem;
  endpoint.key_pem = pair->key_pem;
  return endpoint;
}

}  // namespace assay::agent
