// The all-reduce of this host's own MPI, beside which ours stands in `assay bench allreduce --mpi`.

#ifndef CLI_BENCH_MPI_H_
#define CLI_BENCH_MPI_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "cli/bench/times.h"
#include "cli/terminal/environment.h"

namespace assay::cli {

struct MpiTimes {
  std::string library;  // as it calls itself
  VectorTimes time_us;
};

// Compiles share/assay/bench/all_reduce_mpi.c by $MPICC (mpicc) into `directory` and runs it by
// $MPIEXEC (mpiexec) with -n `ranks`: so it is the MPI that this host's users compile with.
// FAILED_PRECONDITION, with what the program has said, if either fails or is not there; NOT_FOUND:
// the source is missing. Blocks, each step at most `patience`.
absl::StatusOr<MpiTimes> MeasureMpi(const Environment& environment, int ranks,
                                    const std::vector<int64_t>& sizes, const std::string& directory,
                                    absl::Duration patience);

}  // namespace assay::cli

#endif  // CLI_BENCH_MPI_H_
