// Whom a certificate names, as OpenSSL says it.

#ifndef TESTS_SUPPORT_CERTIFICATE_SUBJECT_H_
#define TESTS_SUPPORT_CERTIFICATE_SUBJECT_H_

#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

#include "common/openssl_ptr.h"

namespace assay::testing {

// The subject on one line, as "CN = w0"; empty if `certificate_pem` is no certificate.
inline std::string SubjectOf(absl::string_view certificate_pem) {
  using CertPtr = std::unique_ptr<X509, OpenSslFree<X509_free>>;
  const BioPtr in(
      BIO_new_mem_buf(certificate_pem.data(), static_cast<int>(certificate_pem.size())));
  const CertPtr certificate(PEM_read_bio_X509(in.get(), nullptr, NoPassphrase, nullptr));
  if (certificate == nullptr) return "";
  const BioPtr out(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(out.get(), X509_get_subject_name(certificate.get()), 0, XN_FLAG_ONELINE);
  char* data = nullptr;
  const auto size = BIO_get_mem_data(out.get(), &data);
  return {data, static_cast<size_t>(size)};
}

}  // namespace assay::testing

#endif  // TESTS_SUPPORT_CERTIFICATE_SUBJECT_H_
