// What the ranks of a run make of the secret that they share: proofs that they know it, and keys
// for one purpose each. Over OpenSSL; HMAC-SHA256 (RFC 2104) and HKDF (RFC 5869).

#ifndef WORKER_COMM_KEYS_H_
#define WORKER_COMM_KEYS_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace assay::comm {

inline constexpr size_t kKeyBytes = 32;    // of a derived key
inline constexpr size_t kProofBytes = 32;  // of HMAC-SHA256
inline constexpr size_t kNonceBytes = 32;  // random, never used again

// HMAC-SHA256, kProofBytes long.
std::string Proof(absl::string_view key, absl::string_view bytes);

// HKDF-SHA256: a key of kKeyBytes for the purpose that `info` names. Whoever knows it learns
// nothing of `secret` nor of other purposes' keys.
std::string DeriveKey(absl::string_view secret, absl::string_view salt, absl::string_view info);

// Compares in a time that does not depend on where the two differ.
bool SameBytes(absl::string_view a, absl::string_view b);

}  // namespace assay::comm

#endif  // WORKER_COMM_KEYS_H_
