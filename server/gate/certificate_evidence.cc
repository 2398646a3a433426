#include "server/gate/certificate_evidence.h"

#include <openssl/x509v3.h>

#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "common/openssl_ptr.h"
#include "common/status.h"
#include "server/auth/certificate_generation.h"
#include "server/auth/certificate_token.h"

namespace assay::gate {
namespace {

using NamesPtr = std::unique_ptr<GENERAL_NAMES, OpenSslFree<GENERAL_NAMES_free>>;

absl::StatusOr<std::string> CommonName(X509* certificate) {
  X509_NAME* const name = X509_get_subject_name(certificate);
  const int index = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
  unsigned char* data = nullptr;
  // A second common name would be read by one program and not by another.
  const bool is_one = index >= 0 && X509_NAME_get_index_by_NID(name, NID_commonName, index) < 0;
  const int size = is_one ? ASN1_STRING_to_UTF8(
                                &data, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, index)))
                          : -1;
  if (size <= 0) {
    OPENSSL_free(data);
    return absl::UnauthenticatedError(
        "the client certificate does not have exactly one common name: enrol again");
  }
  std::string text(reinterpret_cast<const char*>(data), static_cast<size_t>(size));
  OPENSSL_free(data);
  return text;
}

std::vector<std::string> Uris(X509* certificate) {
  std::vector<std::string> uris;
  const NamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const text = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                      static_cast<size_t>(ASN1_STRING_length(text)));
  }
  return uris;
}

}  // namespace

absl::StatusOr<auth::Evidence> EvidenceOfCertificate(X509* certificate) {
  auth::Evidence evidence;
  ASSIGN_OR_RETURN(evidence.certificate_common_name, CommonName(certificate));
  const std::vector<std::string> uris = Uris(certificate);
  ASSIGN_OR_RETURN(evidence.certificate_generation, auth::GenerationOf(uris));
  ASSIGN_OR_RETURN(evidence.certificate_token_sha256, auth::TokenSha256Of(uris));
  std::tm end{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) == 1)
    evidence.certificate_end_us = absl::ToUnixMicros(absl::FromTM(end, absl::UTCTimeZone()));
  return evidence;
}

}  // namespace assay::gate
