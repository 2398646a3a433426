#include "common/analysis/compatibility.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"

namespace assay::analysis {
namespace {

// The table's columns. It ends before HPC 2.0 and 3.0.
constexpr std::array<absl::string_view, 2> kRounds = {"hpc-0.7.0", "hpc-1.0.0"};

// The table's cells that join columns: results from the first round to the last.
struct Joined {
  absl::string_view benchmark, first_round, last_round;
};
constexpr std::array<Joined, 1> kJoined = {{{"deepcam", "hpc-0.7.0", "hpc-1.0.0"}}};

// Of a round that the table lacks kRounds.size().
size_t ColumnOf(absl::string_view round) {
  return static_cast<size_t>(std::find(kRounds.begin(), kRounds.end(), round) - kRounds.begin());
}

}  // namespace

std::string WhyNotComparable(absl::string_view benchmark, absl::string_view from_round,
                             absl::string_view to_round) {
  if (from_round == to_round) return "";
  for (const absl::string_view round : {from_round, to_round})
    if (ColumnOf(round) == kRounds.size())
      return absl::StrCat("the published table has no round ", round);
  const size_t first = std::min(ColumnOf(from_round), ColumnOf(to_round));
  const size_t last = std::max(ColumnOf(from_round), ColumnOf(to_round));
  const bool is_joined = std::any_of(kJoined.begin(), kJoined.end(), [&](const Joined& joined) {
    return joined.benchmark == benchmark && ColumnOf(joined.first_round) <= first &&
           last <= ColumnOf(joined.last_round);
  });
  if (is_joined) return "";
  return absl::StrCat("the published table does not join ", benchmark, " of ", from_round, " and ",
                      to_round);
}

}  // namespace assay::analysis
