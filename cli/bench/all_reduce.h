// assay bench allreduce.

#ifndef CLI_BENCH_ALL_REDUCE_H_
#define CLI_BENCH_ALL_REDUCE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "cli/command/command.h"

namespace assay::cli {

Command AllReduceCommand();

// "4,1KiB,16MiB" as bytes. INVALID_ARGUMENT for what is no size, no multiple of 4, or above 1 GiB.
absl::StatusOr<std::vector<int64_t>> ParseVectorSizes(absl::string_view text);

}  // namespace assay::cli

#endif  // CLI_BENCH_ALL_REDUCE_H_
