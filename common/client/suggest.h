// "Did you mean ...?" for misspelt words. Pure functions.

#ifndef COMMON_CLIENT_SUGGEST_H_
#define COMMON_CLIENT_SUGGEST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace assay::client {

// Letters to insert, delete, replace or swap with their neighbour to turn `a` into `b` (optimal
// string alignment).
int EditDistance(absl::string_view a, absl::string_view b);

// The candidate nearest to `word`, or "" if none is near enough to be meant: at most a third of its
// letters wrong (but one in any word of three), or `word` is how it begins. Ties: the first.
std::string Suggest(absl::string_view word, const std::vector<std::string>& candidates);

// "; did you mean 'list'?" or "".
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& candidates);

}  // namespace assay::client

#endif  // COMMON_CLIENT_SUGGEST_H_
