// SHA-256 (FIPS 180-4) over OpenSSL.

#ifndef COMMON_SHA256_H_
#define COMMON_SHA256_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace assay {

// Hashes what is added, in pieces. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void Add(absl::string_view bytes);
  // The digest as 64 lower-case hexadecimal digits. Call this or Digest once; Add nothing
  // afterwards.
  std::string HexDigest();
  // The digest as its 32 bytes.
  std::string Digest();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// The digest of `bytes` as 64 lower-case hexadecimal digits.
std::string Sha256Hex(absl::string_view bytes);

// The digest of a regular file's content, read in pieces. Errors as OpenRegularFile's.
absl::StatusOr<std::string> Sha256HexOfFile(const std::string& path);

}  // namespace assay

#endif  // COMMON_SHA256_H_
