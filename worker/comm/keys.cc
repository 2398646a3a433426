#include "worker/comm/keys.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <array>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

#include "common/log.h"
#include "common/openssl_ptr.h"

namespace assay::comm {
namespace {

const unsigned char* Bytes(absl::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

OSSL_PARAM OctetParam(const char* name, absl::string_view value) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<char*>(value.data()), value.size());
}

}  // namespace

std::string Proof(absl::string_view key, absl::string_view bytes) {
  std::string proof(kProofBytes, '\0');
  unsigned size = 0;
  const unsigned char* const made =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), Bytes(bytes), bytes.size(),
           reinterpret_cast<unsigned char*>(proof.data()), &size);
  CHECK(made != nullptr && size == kProofBytes) << "HMAC-SHA256 failed";
  return proof;
}

std::string DeriveKey(absl::string_view secret, absl::string_view salt, absl::string_view info) {
  const std::unique_ptr<EVP_KDF, OpenSslFree<EVP_KDF_free>> kdf(
      EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  CHECK(kdf != nullptr) << "OpenSSL has no HKDF";
  const std::unique_ptr<EVP_KDF_CTX, OpenSslFree<EVP_KDF_CTX_free>> context(
      EVP_KDF_CTX_new(kdf.get()));
  CHECK(context != nullptr) << "no memory for HKDF";
  std::array<char, 7> digest = {'S', 'H', 'A', '2', '5', '6', '\0'};
  const std::array<OSSL_PARAM, 5> params = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
      OctetParam(OSSL_KDF_PARAM_KEY, secret), OctetParam(OSSL_KDF_PARAM_SALT, salt),
      OctetParam(OSSL_KDF_PARAM_INFO, info), OSSL_PARAM_construct_end()};
  std::string key(kKeyBytes, '\0');
  CHECK(EVP_KDF_derive(context.get(), reinterpret_cast<unsigned char*>(key.data()), key.size(),
                       params.data()) == 1)
      << "HKDF failed";
  return key;
}

bool SameBytes(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace assay::comm
