#include "cli/bench/times.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace assay::cli {

absl::StatusOr<VectorTimes> ReadTimes(absl::string_view printed, const std::vector<int64_t>& sizes,
                                      absl::string_view who) {
  VectorTimes times;
  for (const absl::string_view line : absl::StrSplit(printed, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(line, ' ');
    int64_t bytes = 0;
    double us = 0;
    if (absl::SimpleAtoi(parts.first, &bytes) && absl::SimpleAtod(parts.second, &us) && us > 0)
      times[bytes] = us;
  }
  const auto is_timed = [&times](int64_t bytes) { return times.contains(bytes); };
  if (std::all_of(sizes.begin(), sizes.end(), is_timed)) return times;
  return absl::FailedPreconditionError(
      absl::StrCat(who, " have not printed all times: ", absl::StripAsciiWhitespace(printed)));
}

}  // namespace assay::cli
