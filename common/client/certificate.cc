#include "common/client/certificate.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/client/client.h"
#include "common/file.h"
#include "common/pki.h"
#include "common/rpc/certificate_exchange.h"
#include "common/secret.h"
#include "common/sha256.h"
#include "common/status.h"

namespace assay::client {
namespace {

// What is left of a certificate that is still used: longer than a command waits for one call.
constexpr absl::Duration kLifeLeftMin = absl::Minutes(5);

// Where the pair for `endpoint` is kept; empty without a cache.
std::string CachePath(const std::string& directory, const Endpoint& endpoint) {
  if (directory.empty()) return "";
  const std::string key = Sha256Hex(absl::StrCat(endpoint.target, "\n", Sha256Hex(endpoint.ca_pem),
                                                 "\n", TokenHash(endpoint.token)));
  return absl::StrCat(JoinPath(JoinPath(directory, "certificates"), key), ".pem");
}

// The kept pair, if it is whole and lasts a while yet.
absl::StatusOr<CertificateAndKey> Load(const std::string& path, absl::Time now) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ASSIGN_OR_RETURN(CertificateAndKey pair, ParsePair(text));
  ASSIGN_OR_RETURN(const absl::Time end, NotAfter(pair.certificate_pem));
  if (end - now < kLifeLeftMin) return absl::NotFoundError("about to end");
  return pair;
}

absl::StatusOr<CertificateAndKey> Exchange(const Endpoint& endpoint, Patience patience) {
  ASSIGN_OR_RETURN(KeyAndCsr made, MakeKeyAndCsr("assay"));  // the coordinator chooses the name
  CertificateAndKey pair{.certificate_pem = {}, .key_pem = std::move(made.key_pem)};
  absl::StatusOr<std::string> certificate =
      ExchangeForCertificate({.endpoint = endpoint,
                              .path = AccessCertificatePath(),
                              .csr_pem = made.csr_pem,
                              .timeout = Client::kRetryFor,
                              .is_patient = patience == Patience::kRetry});
  if (!certificate.ok()) return Explain(endpoint, certificate.status());
  pair.certificate_pem = *std::move(certificate);
  RETURN_IF_ERROR(CheckPair(pair));
  return pair;
}

void Keep(const std::string& path, const CertificateAndKey& pair) {
  const std::string directory = path.substr(0, path.rfind('/'));
  if (!MakeDirectories(directory, kPrivateDirectory).ok()) return;
  // Best effort: without it the next command asks again.
  WriteFileAtomic(path, PairText(pair), kPrivateFile).IgnoreError();
}

}  // namespace

absl::StatusOr<Endpoint> WithCertificate(const std::string& cache_directory, absl::Time now,
                                         Endpoint endpoint, Patience patience) {
  if (absl::StartsWith(endpoint.target, "unix:")) return endpoint;
  if (endpoint.token.empty()) {
    return Explain(endpoint, absl::UnauthenticatedError(absl::StrCat(
                                 "the coordinator at ", endpoint.target, " asks who you are")));
  }
  if (endpoint.ca_pem.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no CA certificate for ", endpoint.target,
        ": give the coordinator's ca.crt with --ca or ASSAY_CA, or use its Unix socket"));
  }
  const std::string path = CachePath(cache_directory, endpoint);
  absl::StatusOr<CertificateAndKey> pair = absl::NotFoundError("no cache");
  if (!path.empty()) pair = Load(path, now);
  if (!pair.ok()) {
    ASSIGN_OR_RETURN(pair, Exchange(endpoint, patience));
    if (!path.empty()) Keep(path, *pair);
  }
  endpoint.certificate_pem = pair->certificate_pem;
  endpoint.key_pem = pair->key_pem;
  endpoint.token.clear();
  return endpoint;
}

}  // namespace assay::client
