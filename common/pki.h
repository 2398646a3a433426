// The small certificate authority by which a coordinator and its workers know each other: keys,
// requests and certificates (X.509 v3; EC P-256, ECDSA with SHA-256), as PEM text.
//
//   ASSIGN_OR_RETURN(const CertificateAndKey ca, MakeCa("assay CA of fjord", {now, days}));
//   ASSIGN_OR_RETURN(const KeyAndCsr mine, MakeKeyAndCsr("w0"));            // on the worker
//   ASSIGN_OR_RETURN(const std::string cert, SignCsr(ca, mine.csr_pem, {.common_name = "w0",
//   ...}));
//
// All functions are thread-safe and block for well under a millisecond. Errors of OpenSSL come back
// as INVALID_ARGUMENT when a text given is wrong, and INTERNAL otherwise, with OpenSSL's own words.

#ifndef COMMON_PKI_H_
#define COMMON_PKI_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace assay {

struct CertificateAndKey {
  std::string certificate_pem;
  std::string key_pem;  // PKCS #8, not encrypted: store it with mode 0600
};

struct KeyAndCsr {
  std::string key_pem;
  std::string csr_pem;  // PKCS #10
};

// From five minutes before `now`, so that a peer whose clock is a little behind accepts it, to
// `now + lifetime`.
struct Validity {
  absl::Time now;
  absl::Duration lifetime;
};

enum class CertificateKind {
  kServer,  // extended key usage serverAuth
  kClient,  // clientAuth
};

struct CertificateRequest {
  std::string common_name;                 // 1 to 64 printable ASCII characters
  std::vector<std::string> subject_names;  // host names and IP addresses a server answers to
  std::vector<std::string> uris;           // printable ASCII; alternative names of the subject too
  CertificateKind kind = CertificateKind::kClient;
  Validity validity;
};

// A self-signed authority that may sign leaves only (path length 0).
// INVALID_ARGUMENT if the name or the lifetime is unusable.
absl::StatusOr<CertificateAndKey> MakeCa(absl::string_view common_name, const Validity& validity);

// A new key and a request to certify it. INVALID_ARGUMENT if the name is unusable.
absl::StatusOr<KeyAndCsr> MakeKeyAndCsr(absl::string_view common_name);

// A certificate for the key of `csr_pem`. Everything but the key comes from `request`: what the CSR
// says about its subject is ignored. INVALID_ARGUMENT if the CSR does not parse, is not signed by
// its own key, or has a key weaker than 112 bits; FAILED_PRECONDITION if `ca` is not a pair.
absl::StatusOr<std::string> SignCsr(const CertificateAndKey& ca, absl::string_view csr_pem,
                                    const CertificateRequest& request);

// When the certificate ends to be valid.
absl::StatusOr<absl::Time> NotAfter(absl::string_view certificate_pem);

// OK if `pair.key_pem` is the private key of `pair.certificate_pem`; else FAILED_PRECONDITION.
absl::Status CheckPair(const CertificateAndKey& pair);

// A certificate and its key as one text, so that no crash parts a new one from an old one.
std::string PairText(const CertificateAndKey& pair);

// What PairText wrote. DATA_LOSS if there is no key in `text`; FAILED_PRECONDITION or
// INVALID_ARGUMENT if the two are damaged or do not belong together.
absl::StatusOr<CertificateAndKey> ParsePair(absl::string_view text);

// OK if `ca_pem` signed `certificate_pem`; else FAILED_PRECONDITION. Looks at no dates.
absl::Status CheckSignedBy(absl::string_view certificate_pem, absl::string_view ca_pem);

}  // namespace assay

#endif  // COMMON_PKI_H_
