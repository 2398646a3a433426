#include "common/pki.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "common/openssl_ptr.h"
#include "common/secret.h"
#include "common/status.h"

namespace assay {
namespace {

constexpr size_t kCommonNameMax = 64;      // ub-common-name, RFC 5280 appendix A
constexpr size_t kPemBytesMax = 64 << 10;  // a chain of a dozen certificates
constexpr int kSecurityBitsMin = 112;      // NIST SP 800-57: RSA-2048, P-224 and up
constexpr absl::Duration kBackdate = absl::Minutes(5);
constexpr long kX509Version3 = 2;  // the field counts from zero

using CertPtr = std::unique_ptr<X509, OpenSslFree<X509_free>>;
using CsrPtr = std::unique_ptr<X509_REQ, OpenSslFree<X509_REQ_free>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, OpenSslFree<X509_EXTENSION_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, OpenSslFree<GENERAL_NAMES_free>>;
using NamePtr = std::unique_ptr<GENERAL_NAME, OpenSslFree<GENERAL_NAME_free>>;
using NumberPtr = std::unique_ptr<BIGNUM, OpenSslFree<BN_free>>;

// What OpenSSL has to say, and its queue emptied.
std::string OpenSslText() {
  std::string text;
  while (const unsigned long code = ERR_get_error()) {
    std::array<char, 256> line{};
    ERR_error_string_n(code, line.data(), line.size());
    absl::StrAppend(&text, text.empty() ? "" : "; ", line.data());
  }
  return text.empty() ? "no reason given by OpenSSL" : text;
}

absl::Status Internal(absl::string_view what) {
  return absl::InternalError(absl::StrCat(what, ": ", OpenSslText()));
}

absl::Status Invalid(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", OpenSslText()));
}

// A BIO that reads `text`, or null if it is longer than any PEM of ours.
BioPtr Reader(absl::string_view text) {
  if (text.size() > kPemBytesMax) return nullptr;
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string Written(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

absl::StatusOr<CertPtr> ParseCertificate(absl::string_view pem) {
  const BioPtr bio = Reader(pem);
  CertPtr cert(bio == nullptr ? nullptr : PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (cert == nullptr) return Invalid("not a certificate in PEM form");
  return cert;
}

absl::StatusOr<KeyPtr> ParseKey(absl::string_view pem) {
  const BioPtr bio = Reader(pem);
  KeyPtr key(bio == nullptr ? nullptr
                            : PEM_read_bio_PrivateKey(bio.get(), nullptr, &NoPassphrase, nullptr));
  if (key == nullptr) return Invalid("not an unencrypted private key in PEM form");
  return key;
}

absl::StatusOr<CsrPtr> ParseCsr(absl::string_view pem) {
  const BioPtr bio = Reader(pem);
  CsrPtr csr(bio == nullptr ? nullptr
                            : PEM_read_bio_X509_REQ(bio.get(), nullptr, nullptr, nullptr));
  if (csr == nullptr) return Invalid("not a certificate request (PKCS #10) in PEM form");
  return csr;
}

absl::StatusOr<std::string> CertificateText(X509* cert) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || PEM_write_bio_X509(bio.get(), cert) != 1)
    return Internal("cannot write a certificate");
  return Written(bio.get());
}

absl::StatusOr<std::string> KeyText(EVP_PKEY* key) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr ||
      PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return Internal("cannot write a private key");
  return Written(bio.get());
}

absl::StatusOr<KeyPtr> MakeKey() {
  KeyPtr key(EVP_EC_gen("P-256"));
  if (key == nullptr) return Internal("cannot make a P-256 key");
  return key;
}

absl::Status CheckCommonName(absl::string_view name) {
  const bool is_printable = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isprint(static_cast<unsigned char>(c));
  });
  if (!name.empty() && name.size() <= kCommonNameMax && is_printable) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("unusable common name \"", absl::CHexEscape(name),
                                                 "\": give 1 to ", kCommonNameMax,
                                                 " printable ASCII characters"));
}

absl::Status SetCommonName(X509_NAME* name, absl::string_view common_name) {
  RETURN_IF_ERROR(CheckCommonName(common_name));
  const std::string text(common_name);
  if (X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(text.data()),
                                 static_cast<int>(text.size()), -1, 0) != 1)
    return Internal("cannot set a common name");
  return absl::OkStatus();
}

absl::Status SetValidity(X509* cert, const Validity& validity) {
  if (validity.lifetime <= absl::ZeroDuration() || validity.lifetime > absl::Hours(24 * 36500)) {
    return absl::InvalidArgumentError(absl::StrCat("unusable lifetime ",
                                                   absl::FormatDuration(validity.lifetime),
                                                   ": give more than 0 and at most 100 years"));
  }
  const time_t start = absl::ToTimeT(validity.now - kBackdate);
  const time_t end = absl::ToTimeT(validity.now + validity.lifetime);
  if (ASN1_TIME_set(X509_getm_notBefore(cert), start) == nullptr ||
      ASN1_TIME_set(X509_getm_notAfter(cert), end) == nullptr)
    return Internal("cannot set the dates of a certificate");
  return absl::OkStatus();
}

// 159 random bits: positive, within 20 octets, not guessable (RFC 5280, 4.1.2.2).
absl::Status SetSerial(X509* cert) {
  std::string bytes = RandomBytes(20);
  bytes[0] = static_cast<char>((bytes[0] & 0x3f) | 0x40);
  const NumberPtr number(BN_bin2bn(reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()), nullptr));
  if (number == nullptr || BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(cert)) == nullptr)
    return Internal("cannot set a serial number");
  return absl::OkStatus();
}

// `value` is a constant of ours in OpenSSL's extension language, never a text from outside.
absl::Status AddExtension(X509* cert, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, cert, nullptr, nullptr, 0);
  const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  if (extension == nullptr || X509_add_ext(cert, extension.get(), -1) != 1)
    return Internal(absl::StrCat("cannot add extension ", OBJ_nid2sn(nid), "=", value));
  return absl::OkStatus();
}

// A name of a kind that is a text of its own: GEN_DNS or GEN_URI.
absl::StatusOr<NamePtr> TextName(int kind, const std::string& text) {
  NamePtr name(GENERAL_NAME_new());
  ASN1_IA5STRING* const value = ASN1_IA5STRING_new();
  if (name == nullptr || value == nullptr ||
      ASN1_STRING_set(value, text.data(), static_cast<int>(text.size())) != 1) {
    ASN1_IA5STRING_free(value);
    return Internal("cannot make a subject name");
  }
  GENERAL_NAME_set0_value(name.get(), kind, value);
  return name;
}

// A URI as it stands: its scheme is the caller's business.
absl::StatusOr<NamePtr> UriName(const std::string& text) {
  const bool is_printable = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (!text.empty() && text.size() <= 253 && is_printable) return TextName(GEN_URI, text);
  return absl::InvalidArgumentError(absl::StrCat("\"", absl::CHexEscape(text), "\" is no URI"));
}

// An IP address if `text` reads as one, else a host name.
absl::StatusOr<NamePtr> SubjectName(const std::string& text) {
  if (ASN1_OCTET_STRING* address = a2i_IPADDRESS(text.c_str())) {
    NamePtr name(GENERAL_NAME_new());
    if (name == nullptr) {
      ASN1_OCTET_STRING_free(address);
      return Internal("cannot make a subject name");
    }
    GENERAL_NAME_set0_value(name.get(), GEN_IPADD, address);
    return name;
  }
  ERR_clear_error();
  const bool is_host =
      !text.empty() && text.size() <= 253 && std::all_of(text.begin(), text.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' ||
               c == '_' || c == '*';
      });
  if (!is_host) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", absl::CHexEscape(text), "\" is neither a host name nor an IP address"));
  }
  return TextName(GEN_DNS, text);
}

absl::Status Push(absl::StatusOr<NamePtr> name, GENERAL_NAMES* names) {
  RETURN_IF_ERROR(name.status());
  if (sk_GENERAL_NAME_push(names, name->get()) == 0) return Internal("out of memory");
  static_cast<void>(name->release());
  return absl::OkStatus();
}

absl::Status AddSubjectNames(X509* cert, const CertificateRequest& request) {
  if (request.subject_names.empty() && request.uris.empty()) return absl::OkStatus();
  const NamesPtr names(GENERAL_NAMES_new());
  if (names == nullptr) return Internal("cannot make subject names");
  for (const std::string& text : request.subject_names)
    RETURN_IF_ERROR(Push(SubjectName(text), names.get()));
  for (const std::string& text : request.uris)
    RETURN_IF_ERROR(Push(UriName(text), names.get()));
  if (X509_add1_ext_i2d(cert, NID_subject_alt_name, names.get(), 0, X509V3_ADD_DEFAULT) != 1)
    return Internal("cannot add subject names");
  return absl::OkStatus();
}

// A certificate with version, serial, dates and subject; no key, issuer or extensions yet.
absl::StatusOr<CertPtr> StartCertificate(absl::string_view common_name, const Validity& validity) {
  CertPtr cert(X509_new());
  if (cert == nullptr || X509_set_version(cert.get(), kX509Version3) != 1)
    return Internal("cannot make a certificate");
  RETURN_IF_ERROR(SetSerial(cert.get()));
  RETURN_IF_ERROR(SetValidity(cert.get(), validity));
  RETURN_IF_ERROR(SetCommonName(X509_get_subject_name(cert.get()), common_name));
  return cert;
}

absl::Status AddLeafExtensions(X509* cert, X509* issuer, CertificateKind kind) {
  const char* usage = kind == CertificateKind::kServer ? "serverAuth" : "clientAuth";
  RETURN_IF_ERROR(AddExtension(cert, issuer, NID_basic_constraints, "critical,CA:FALSE"));
  RETURN_IF_ERROR(AddExtension(cert, issuer, NID_key_usage, "critical,digitalSignature"));
  RETURN_IF_ERROR(AddExtension(cert, issuer, NID_ext_key_usage, usage));
  RETURN_IF_ERROR(AddExtension(cert, issuer, NID_subject_key_identifier, "hash"));
  return AddExtension(cert, issuer, NID_authority_key_identifier, "keyid:always");
}

}  // namespace

absl::StatusOr<CertificateAndKey> MakeCa(absl::string_view common_name, const Validity& validity) {
  ASSIGN_OR_RETURN(const KeyPtr key, MakeKey());
  ASSIGN_OR_RETURN(const CertPtr cert, StartCertificate(common_name, validity));
  X509* const x509 = cert.get();
  if (X509_set_issuer_name(x509, X509_get_subject_name(x509)) != 1 ||
      X509_set_pubkey(x509, key.get()) != 1)
    return Internal("cannot fill in a CA certificate");
  RETURN_IF_ERROR(AddExtension(x509, x509, NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
  RETURN_IF_ERROR(AddExtension(x509, x509, NID_key_usage, "critical,keyCertSign,cRLSign"));
  RETURN_IF_ERROR(AddExtension(x509, x509, NID_subject_key_identifier, "hash"));
  if (X509_sign(x509, key.get(), EVP_sha256()) == 0) return Internal("cannot sign a CA");
  CertificateAndKey ca;
  ASSIGN_OR_RETURN(ca.certificate_pem, CertificateText(x509));
  ASSIGN_OR_RETURN(ca.key_pem, KeyText(key.get()));
  return ca;
}

absl::StatusOr<KeyAndCsr> MakeKeyAndCsr(absl::string_view common_name) {
  ASSIGN_OR_RETURN(const KeyPtr key, MakeKey());
  const CsrPtr csr(X509_REQ_new());
  if (csr == nullptr || X509_REQ_set_version(csr.get(), 0) != 1 ||
      X509_REQ_set_pubkey(csr.get(), key.get()) != 1)
    return Internal("cannot make a certificate request");
  RETURN_IF_ERROR(SetCommonName(X509_REQ_get_subject_name(csr.get()), common_name));
  if (X509_REQ_sign(csr.get(), key.get(), EVP_sha256()) == 0)
    return Internal("cannot sign a certificate request");
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || PEM_write_bio_X509_REQ(bio.get(), csr.get()) != 1)
    return Internal("cannot write a certificate request");
  KeyAndCsr result;
  result.csr_pem = Written(bio.get());
  ASSIGN_OR_RETURN(result.key_pem, KeyText(key.get()));
  return result;
}

absl::StatusOr<std::string> SignCsr(const CertificateAndKey& ca, absl::string_view csr_pem,
                                    const CertificateRequest& request) {
  RETURN_IF_ERROR(Annotate(CheckPair(ca), "CA"));
  ASSIGN_OR_RETURN(const CertPtr issuer, ParseCertificate(ca.certificate_pem));
  ASSIGN_OR_RETURN(const KeyPtr issuer_key, ParseKey(ca.key_pem));
  ASSIGN_OR_RETURN(const CsrPtr csr, ParseCsr(csr_pem));
  EVP_PKEY* const key = X509_REQ_get0_pubkey(csr.get());
  if (key == nullptr || X509_REQ_verify(csr.get(), key) != 1)
    return Invalid("the certificate request is not signed by its own key");
  if (EVP_PKEY_get_security_bits(key) < kSecurityBitsMin)
    return absl::InvalidArgumentError("the key of the certificate request is too weak: use P-256");
  ASSIGN_OR_RETURN(const CertPtr cert, StartCertificate(request.common_name, request.validity));
  if (X509_set_issuer_name(cert.get(), X509_get_subject_name(issuer.get())) != 1 ||
      X509_set_pubkey(cert.get(), key) != 1)
    return Internal("cannot fill in a certificate");
  RETURN_IF_ERROR(AddLeafExtensions(cert.get(), issuer.get(), request.kind));
  RETURN_IF_ERROR(AddSubjectNames(cert.get(), request));
  if (X509_sign(cert.get(), issuer_key.get(), EVP_sha256()) == 0)
    return Internal("cannot sign a certificate");
  return CertificateText(cert.get());
}

absl::StatusOr<absl::Time> NotAfter(absl::string_view certificate_pem) {
  ASSIGN_OR_RETURN(const CertPtr cert, ParseCertificate(certificate_pem));
  std::tm end{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(cert.get()), &end) != 1)
    return Invalid("unreadable end of validity");
  return absl::FromTM(end, absl::UTCTimeZone());
}

absl::Status CheckPair(const CertificateAndKey& pair) {
  ASSIGN_OR_RETURN(const CertPtr cert, ParseCertificate(pair.certificate_pem));
  ASSIGN_OR_RETURN(const KeyPtr key, ParseKey(pair.key_pem));
  if (X509_check_private_key(cert.get(), key.get()) == 1) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the private key does not belong to the certificate: ", OpenSslText()));
}

std::string PairText(const CertificateAndKey& pair) {
  return absl::StrCat(pair.certificate_pem, pair.key_pem);
}

absl::StatusOr<CertificateAndKey> ParsePair(absl::string_view text) {
  const size_t key_at = text.find("-----BEGIN PRIVATE KEY-----");
  if (key_at == absl::string_view::npos)
    return absl::DataLossError("there is no private key behind the certificate");
  CertificateAndKey pair{.certificate_pem = std::string(text.substr(0, key_at)),
                         .key_pem = std::string(text.substr(key_at))};
  RETURN_IF_ERROR(CheckPair(pair));
  return pair;
}

absl::Status CheckSignedBy(absl::string_view certificate_pem, absl::string_view ca_pem) {
  ASSIGN_OR_RETURN(const CertPtr cert, ParseCertificate(certificate_pem));
  ASSIGN_OR_RETURN(const CertPtr ca, ParseCertificate(ca_pem));
  if (X509_check_ca(ca.get()) != 0 && X509_verify(cert.get(), X509_get0_pubkey(ca.get())) == 1)
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the certificate is not signed by the CA: ", OpenSslText()));
}

}  // namespace assay
