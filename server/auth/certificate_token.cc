#include "server/auth/certificate_token.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace assay::auth {
namespace {

constexpr absl::string_view kTokenPrefix = "urn:assay:token-sha256:";
constexpr size_t kDigits = 64;

}  // namespace

std::string TokenUri(absl::string_view secret_sha256) {
  return absl::StrCat(kTokenPrefix, secret_sha256);
}

absl::StatusOr<std::string> TokenSha256Of(const std::vector<std::string>& uris) {
  std::string found;
  for (const std::string& uri : uris) {
    absl::string_view digits = uri;
    if (!absl::ConsumePrefix(&digits, kTokenPrefix)) continue;
    const bool is_hash =
        digits.size() == kDigits && std::all_of(digits.begin(), digits.end(), [](char c) {
          return absl::ascii_isxdigit(static_cast<unsigned char>(c));
        });
    if (!found.empty() || !is_hash) {
      return absl::UnauthenticatedError(
          "the client certificate does not name one token: log in again with a token");
    }
    found = std::string(digits);
  }
  return found;
}

}  // namespace assay::auth
