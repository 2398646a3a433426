#include "common/ed25519.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <array>
#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/openssl_ptr.h"
#include "common/status.h"

namespace assay {
namespace {

constexpr size_t kKeyPemBytesMax = 4096;  // a key takes some 120
constexpr size_t kSignatureBytes = 64;

using DigestPtr = std::unique_ptr<EVP_MD_CTX, OpenSslFree<EVP_MD_CTX_free>>;

const uint8_t* Bytes(absl::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

enum class Half { kPrivate, kPublic };

absl::StatusOr<KeyPtr> ReadKey(absl::string_view pem, Half half) {
  const bool is_private = half == Half::kPrivate;
  KeyPtr key;
  if (pem.size() <= kKeyPemBytesMax) {
    const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    CHECK(bio != nullptr);
    key.reset(is_private ? PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr)
                         : PEM_read_bio_PUBKEY(bio.get(), nullptr, NoPassphrase, nullptr));
  }
  ERR_clear_error();
  if (key == nullptr || EVP_PKEY_id(key.get()) != EVP_PKEY_ED25519) {
    return absl::InvalidArgumentError(
        is_private ? "no Ed25519 private key in PEM without passphrase; make one with 'openssl "
                     "genpkey -algorithm ed25519'"
                   : "no Ed25519 public key in PEM; 'openssl pkey -pubout' makes it of the private "
                     "one");
  }
  return key;
}

}  // namespace

absl::StatusOr<std::string> Ed25519Sign(absl::string_view private_key_pem,
                                        absl::string_view message) {
  ASSIGN_OR_RETURN(const KeyPtr key, ReadKey(private_key_pem, Half::kPrivate));
  const DigestPtr context(EVP_MD_CTX_new());
  std::array<uint8_t, kSignatureBytes> signature{};
  size_t size = signature.size();
  CHECK(EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1);
  CHECK(EVP_DigestSign(context.get(), signature.data(), &size, Bytes(message), message.size()) ==
        1);
  return std::string(signature.begin(), signature.begin() + static_cast<ptrdiff_t>(size));
}

absl::Status Ed25519Verify(absl::string_view public_key_pem, absl::string_view message,
                           absl::string_view signature) {
  ASSIGN_OR_RETURN(const KeyPtr key, ReadKey(public_key_pem, Half::kPublic));
  const DigestPtr context(EVP_MD_CTX_new());
  CHECK(EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1);
  const bool is_good = signature.size() == kSignatureBytes &&
                       EVP_DigestVerify(context.get(), Bytes(signature), signature.size(),
                                        Bytes(message), message.size()) == 1;
  ERR_clear_error();
  if (is_good) return absl::OkStatus();
  return absl::DataLossError("the signature is not of this content by this key");
}

}  // namespace assay
