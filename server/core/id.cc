#include "server/core/id.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace assay::core {
namespace {

constexpr size_t kNameLengthMax = 63;

template <char kLetter>
absl::StatusOr<NumberedId<kLetter>> Parse(absl::string_view text) {
  NumberedId<kLetter> id;
  const bool is_prefixed = text.size() > 2 && text[0] == kLetter && text[1] == '-';
  if (!is_prefixed || text[2] < '1' || text[2] > '9' ||
      !absl::SimpleAtoi(text.substr(2), &id.number) || id.ToString() != text) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is no id; write it like ",
                                                   NumberedId<kLetter>{42}.ToString()));
  }
  return id;
}

}  // namespace

absl::StatusOr<SubmissionId> ParseSubmissionId(absl::string_view text) {
  return Parse<'e'>(text);
}
absl::StatusOr<RunId> ParseRunId(absl::string_view text) {
  return Parse<'r'>(text);
}
absl::StatusOr<TokenId> ParseTokenId(absl::string_view text) {
  return Parse<'t'>(text);
}
absl::StatusOr<AllocationId> ParseAllocationId(absl::string_view text) {
  return Parse<'a'>(text);
}

absl::Status CheckName(absl::string_view what, absl::string_view name) {
  bool is_good = !name.empty() && name.size() <= kNameLengthMax;
  for (size_t i = 0; i < name.size() && is_good; ++i) {
    const char c = name[i];
    const bool is_word = absl::ascii_islower(static_cast<unsigned char>(c)) ||
                         absl::ascii_isdigit(static_cast<unsigned char>(c));
    is_good = is_word || (i > 0 && (c == '.' || c == '_' || c == '-'));
  }
  if (is_good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" cannot name a ", what, ": 1 to ", kNameLengthMax,
                   " of a-z, 0-9, '.', '_', '-', beginning with a letter or digit"));
}

}  // namespace assay::core
