#include "worker/agent/enrolment.h"

#include <sys/stat.h>

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "assay/v1/worker_service.grpc.pb.h"

#include "common/file.h"
#include "common/log.h"
#include "common/pki.h"
#include "common/rpc/status_grpc.h"
#include "common/status.h"

namespace assay::agent {
namespace {

constexpr absl::Duration kEnrolTimeout = absl::Seconds(30);
constexpr absl::Duration kExpiryWarning = absl::Hours(48);

struct IdentityPaths {
  explicit IdentityPaths(const std::string& data_directory)
      : directory(JoinPath(data_directory, "identity")),
        key(JoinPath(directory, "key.pem")),
        certificate(JoinPath(directory, "certificate.pem")) {}
  std::string directory;
  std::string key;
  std::string certificate;
};

absl::StatusOr<std::string> TokenOf(const v1::WorkerConfig& config) {
  if (config.enrolment_token_path().empty()) return config.enrolment_token();
  const absl::StatusOr<std::string> text = ReadFile(config.enrolment_token_path());
  if (text.status().code() == absl::StatusCode::kNotFound) return std::string();
  RETURN_IF_ERROR(text.status());
  return std::string(absl::StripAsciiWhitespace(*text));
}

// The stored pair, if it is whole and its time has not passed.
absl::StatusOr<CertificateAndKey> LoadIdentity(const IdentityPaths& paths, const Clock& clock) {
  CertificateAndKey pair;
  ASSIGN_OR_RETURN(pair.certificate_pem, ReadFile(paths.certificate));
  ASSIGN_OR_RETURN(pair.key_pem, ReadFile(paths.key));
  RETURN_IF_ERROR(Annotate(CheckPair(pair), paths.directory));
  ASSIGN_OR_RETURN(const absl::Time end, NotAfter(pair.certificate_pem));
  if (end <= clock.Wall()) {
    return absl::FailedPreconditionError(
        absl::StrCat(paths.certificate, " ended at ", absl::FormatTime(end)));
  }
  if (end - clock.Wall() < kExpiryWarning)
    LOG(WARNING) << "certificate ends soon at=" << absl::FormatTime(end) << ": enrol again";
  return pair;
}

absl::StatusOr<std::string> RequestCertificate(const v1::WorkerConfig& config,
                                               const Endpoint& endpoint, const std::string& token,
                                               const std::string& csr_pem) {
  ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, MakeChannel(endpoint));
  const auto stub = v1::EnrolmentService::NewStub(channel);
  v1::EnrolRequest request;
  request.set_token(token);
  request.set_worker(config.name());
  request.set_csr_pem(csr_pem);
  grpc::ClientContext context;
  PrepareCall(endpoint, kEnrolTimeout, &context);
  context.set_wait_for_ready(true);  // a coordinator that is just starting
  v1::EnrolResponse response;
  RETURN_IF_ERROR(Annotate(FromGrpc(stub->Enrol(&context, request, &response)),
                           absl::StrCat("enrolment at ", endpoint.target)));
  return response.certificate_pem();
}

absl::StatusOr<CertificateAndKey> Enrol(const v1::WorkerConfig& config, const Endpoint& endpoint,
                                        const std::string& token, const IdentityPaths& paths) {
  RETURN_IF_ERROR(MakeDirectories(paths.directory));
  if (chmod(paths.directory.c_str(), 0700) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot protect ", paths.directory));
  ASSIGN_OR_RETURN(KeyAndCsr made, MakeKeyAndCsr(config.name()));
  CertificateAndKey pair{.certificate_pem = {}, .key_pem = std::move(made.key_pem)};
  ASSIGN_OR_RETURN(pair.certificate_pem, RequestCertificate(config, endpoint, token, made.csr_pem));
  RETURN_IF_ERROR(CheckPair(pair));
  RETURN_IF_ERROR(WriteFileAtomic(paths.key, pair.key_pem, 0600));
  RETURN_IF_ERROR(WriteFileAtomic(paths.certificate, pair.certificate_pem));
  LOG(INFO) << "enrolled worker=" << config.name();
  return pair;
}

}  // namespace

absl::StatusOr<Endpoint> LoadOrEnrol(const v1::WorkerConfig& config, const Clock& clock) {
  Endpoint endpoint{.target = config.server_address()};
  const bool is_local = absl::StartsWith(endpoint.target, "unix:");
  if (!is_local) {
    ASSIGN_OR_RETURN(endpoint.ca_pem, ReadFile(config.ca_certificate_path()));
  }
  const IdentityPaths paths(config.data_directory());
  absl::StatusOr<CertificateAndKey> pair = LoadIdentity(paths, clock);
  if (!pair.ok()) {
    ASSIGN_OR_RETURN(const std::string token, TokenOf(config));
    if (token.empty() && is_local) return endpoint;
    if (token.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("no usable certificate (", pair.status().message(),
                       ") and no enrolment token: ask an operator for one (assay tokens create) "
                       "and name it in enrolment_token_path"));
    }
    pair = Enrol(config, endpoint, token, paths);
  }
  RETURN_IF_ERROR(pair.status());
  endpoint.certificate_pem = pair->certificate_pem;
  endpoint.key_pem = pair->key_pem;
  return endpoint;
}

}  // namespace assay::agent
