#include "common/client/suggest.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace assay::client {

int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<std::vector<int>> cost(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    cost[i][0] = static_cast<int>(i);
  for (size_t j = 0; j <= b.size(); ++j)
    cost[0][j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

std::string Suggest(absl::string_view word, const std::vector<std::string>& candidates) {
  constexpr size_t kPrefixLengthMin = 2;
  const std::string lower = absl::AsciiStrToLower(word);
  std::string best;
  int best_distance = 0;
  for (const std::string& candidate : candidates) {
    const bool is_prefix = lower.size() >= kPrefixLengthMin && absl::StartsWith(candidate, lower);
    const int distance = is_prefix ? 1 : EditDistance(lower, candidate);
    const int limit = std::max(1, static_cast<int>(std::max(lower.size(), candidate.size())) / 3);
    if (distance > limit) continue;
    if (!best.empty() && distance >= best_distance) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

std::string DidYouMean(absl::string_view word, const std::vector<std::string>& candidates) {
  const std::string best = Suggest(word, candidates);
  return best.empty() ? "" : absl::StrCat("; did you mean '", best, "'?");
}

}  // namespace assay::client
