// AES-256-GMAC (NIST SP 800-38D): 16 bytes that depend on every bit of a message. Chosen because
// processors have instructions for it: it runs at memory speed, many times faster than the sums.

#ifndef WORKER_COMM_GMAC_H_
#define WORKER_COMM_GMAC_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/strings/string_view.h"

namespace assay::comm {

inline constexpr size_t kMacBytes = 16;
using Mac = std::array<std::byte, kMacBytes>;
inline constexpr size_t kMacNonceBytes = 12;
using MacNonce = std::array<uint8_t, kMacNonceBytes>;

// Of one key. Not thread-safe.
class Gmac {
 public:
  // `key` has kKeyBytes (keys.h).
  explicit Gmac(absl::string_view key);
  ~Gmac();

  // Whoever sees two messages of one nonce can make others: never give one twice if the key is
  // secret.
  Mac Of(const MacNonce& nonce, std::span<const std::byte> bytes);

 private:
  struct Context;
  const std::unique_ptr<Context> context_;
};

// Compares in a time that does not depend on where the two differ.
bool SameMac(const Mac& a, const Mac& b);

// GMAC under a key that everybody knows: finds what went wrong by itself, not what somebody made.
Mac DigestOf(std::span<const std::byte> bytes);

}  // namespace assay::comm

#endif  // WORKER_COMM_GMAC_H_
