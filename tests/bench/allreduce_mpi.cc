// Open MPI's side of allreduce_bench; started by it through mpirun.

// The C interface only: the C++ one needs another library.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <cstddef>

#include "tests/bench/allreduce_loop.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  assay::bench::MeasureAllReduce(
      assay::bench::AllReduceSide{.prints = rank == 0,
                                  .all_reduce =
                                      [](float* values, size_t count) {
                                        MPI_Allreduce(MPI_IN_PLACE, values, static_cast<int>(count),
                                                      MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
                                      },
                                  .barrier = [] { MPI_Barrier(MPI_COMM_WORLD); }});
  MPI_Finalize();
  return 0;
}
