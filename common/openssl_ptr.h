// Owners of OpenSSL's objects, for the few sources that call it.

#ifndef COMMON_OPENSSL_PTR_H_
#define COMMON_OPENSSL_PTR_H_

#include <openssl/bio.h>
#include <openssl/evp.h>

#include <memory>

namespace assay {

// Frees with a function of OpenSSL: std::unique_ptr<X509, OpenSslFree<X509_free>>.
template <auto kFree>
struct OpenSslFree {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using BioPtr = std::unique_ptr<BIO, OpenSslFree<BIO_free_all>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, OpenSslFree<EVP_PKEY_free>>;

// A passphrase callback that never asks at a terminal: an encrypted key is an error.
inline int NoPassphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*user*/) {
  return -1;
}

}  // namespace assay

#endif  // COMMON_OPENSSL_PTR_H_
