#include "worker/comm/gmac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/strings/string_view.h"

#include "common/log.h"
#include "common/openssl_ptr.h"
#include "worker/comm/keys.h"

namespace assay::comm {
namespace {

constexpr size_t kBytesPerUpdate = size_t{1} << 30;  // OpenSSL counts in int

}  // namespace

struct Gmac::Context {
  std::unique_ptr<EVP_CIPHER_CTX, OpenSslFree<EVP_CIPHER_CTX_free>> cipher{EVP_CIPHER_CTX_new()};
};

Gmac::Gmac(absl::string_view key) : context_(std::make_unique<Context>()) {
  CHECK(key.size() == kKeyBytes) << "key_bytes=" << key.size();
  CHECK(EVP_EncryptInit_ex(context_->cipher.get(), EVP_aes_256_gcm(), nullptr,
                           reinterpret_cast<const unsigned char*>(key.data()), nullptr) == 1)
      << "OpenSSL has no AES-256-GCM";
}

Gmac::~Gmac() = default;

// GCM with nothing to encrypt: the message is the additional data.
Mac Gmac::Of(const MacNonce& nonce, std::span<const std::byte> bytes) {
  EVP_CIPHER_CTX* const cipher = context_->cipher.get();
  bool is_good = EVP_EncryptInit_ex(cipher, nullptr, nullptr, nullptr, nonce.data()) == 1;
  int size = 0;
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), kBytesPerUpdate);
    is_good &= EVP_EncryptUpdate(cipher, nullptr, &size,
                                 reinterpret_cast<const unsigned char*>(bytes.data()),
                                 static_cast<int>(count)) == 1;
    bytes = bytes.subspan(count);
  }
  Mac mac;
  unsigned char none = 0;
  is_good &= EVP_EncryptFinal_ex(cipher, &none, &size) == 1;
  is_good &= EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, static_cast<int>(mac.size()),
                                 mac.data()) == 1;
  CHECK(is_good) << "AES-256-GMAC failed";
  return mac;
}

bool SameMac(const Mac& a, const Mac& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Mac DigestOf(std::span<const std::byte> bytes) {
  return Gmac(std::string(kKeyBytes, '\0')).Of({}, bytes);
}

}  // namespace assay::comm
