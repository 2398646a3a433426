// What programs print that time sums over ranks.

#ifndef CLI_BENCH_TIMES_H_
#define CLI_BENCH_TIMES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace assay::cli {

using VectorTimes = std::map<int64_t, double>;  // microseconds, medians, by bytes

// Lines "BYTES MICROSECONDS" of `printed`, among which others may be. FAILED_PRECONDITION, with all
// that was printed, if one of `sizes` has no time; `who` has printed it.
absl::StatusOr<VectorTimes> ReadTimes(absl::string_view printed, const std::vector<int64_t>& sizes,
                                      absl::string_view who);

}  // namespace assay::cli

#endif  // CLI_BENCH_TIMES_H_
