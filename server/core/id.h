// Ids of the resources that the coordinator numbers: submissions e-42, runs r-901, tokens t-7,
// allocations a-12.
//
// An id is a number of its own kind; its text is a letter, a dash and the number. Numbers count
// from 1 and are never reused. Zero means "none" and has no text.

#ifndef SERVER_CORE_ID_H_
#define SERVER_CORE_ID_H_

#include <compare>
#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace assay::core {

template <char kLetter>
struct NumberedId {
  int64_t number = 0;

  auto operator<=>(const NumberedId&) const = default;
  bool is_none() const { return number == 0; }
  // "e-42"
  std::string ToString() const {
    return absl::StrCat(absl::string_view(&kLetterText, 1), "-", number);
  }
  friend std::ostream& operator<<(std::ostream& out, NumberedId id) { return out << id.ToString(); }

  static constexpr char kLetterText = kLetter;
};

using SubmissionId = NumberedId<'e'>;
using RunId = NumberedId<'r'>;
using TokenId = NumberedId<'t'>;
using AllocationId = NumberedId<'a'>;

// The id written as `text`, for example "r-901". INVALID_ARGUMENT for anything else, also for
// leading zeros, signs and numbers beyond int64_t.
absl::StatusOr<SubmissionId> ParseSubmissionId(absl::string_view text);
absl::StatusOr<RunId> ParseRunId(absl::string_view text);
absl::StatusOr<TokenId> ParseTokenId(absl::string_view text);
absl::StatusOr<AllocationId> ParseAllocationId(absl::string_view text);

// OK if `name` can name a worker or a dataset: 1 to 63 of [a-z0-9._-], the first a letter or digit.
// INVALID_ARGUMENT otherwise, saying what `what` ("worker") may look like.
absl::Status CheckName(absl::string_view what, absl::string_view name);

}  // namespace assay::core

#endif  // SERVER_CORE_ID_H_
