// Ed25519 signatures (RFC 8032) with keys as OpenSSL's tools write them:
//
//   openssl genpkey -algorithm ed25519 -out key.pem
//   openssl pkey -in key.pem -pubout -out public.pem
//
// Thread-safe; each call takes well under a millisecond.

#ifndef COMMON_ED25519_H_
#define COMMON_ED25519_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace assay {

// 64 raw bytes. INVALID_ARGUMENT if `private_key_pem` is no Ed25519 key in PEM without passphrase.
absl::StatusOr<std::string> Ed25519Sign(absl::string_view private_key_pem,
                                        absl::string_view message);

// OK if `signature` is of `message` by the key's owner; DATA_LOSS if it is not. INVALID_ARGUMENT if
// `public_key_pem` is no Ed25519 public key in PEM.
absl::Status Ed25519Verify(absl::string_view public_key_pem, absl::string_view message,
                           absl::string_view signature);

}  // namespace assay

#endif  // COMMON_ED25519_H_
