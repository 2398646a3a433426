#include "server/auth/certificate_generation.h"

#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace assay::auth {
namespace {

constexpr absl::string_view kPrefix = "urn:assay:certificate-generation:";

}  // namespace

std::string GenerationUri(int64_t generation) {
  return absl::StrCat(kPrefix, generation);
}

absl::StatusOr<int64_t> GenerationOf(const std::vector<std::string>& uris) {
  std::optional<int64_t> found;
  for (const std::string& uri : uris) {
    absl::string_view digits = uri;
    if (!absl::ConsumePrefix(&digits, kPrefix)) continue;
    int64_t generation = 0;
    // SimpleAtoi also takes signs and spaces.
    const bool is_digit =
        !digits.empty() && absl::ascii_isdigit(static_cast<unsigned char>(digits.front()));
    if (found.has_value() || !is_digit || !absl::SimpleAtoi(digits, &generation)) {
      return absl::UnauthenticatedError(
          "the client certificate does not say its generation, once and as a number: enrol again");
    }
    found = generation;
  }
  return found.value_or(0);
}

}  // namespace assay::auth
