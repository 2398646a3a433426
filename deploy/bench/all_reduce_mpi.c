// The site's MPI beside Assay's all-reduce: `assay bench allreduce --mpi` compiles this by mpicc and
// starts it by mpiexec. Arguments are sizes in bytes, multiples of 4. Rank 0 prints the library's
// name, and for each size its median in microseconds, taken as worker/trainer/all_reduce_times.cc
// takes ours.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MIN = 7, ROUNDS_MAX = 500, WARM_UP = 3 };
static const long BYTES_OF_ALL = 128L << 20;

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median_us(float* values, long bytes) {
  static double times[ROUNDS_MAX];
  long rounds = BYTES_OF_ALL / bytes;
  if (rounds < ROUNDS_MIN) rounds = ROUNDS_MIN;
  if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
  for (long i = -WARM_UP; i < rounds; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, values, (int)(bytes / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (i >= 0) times[i] = (MPI_Wtime() - begin) * 1e6;
  }
  qsort(times, (size_t)rounds, sizeof(double), compare);
  return times[rounds / 2];
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, length = 0;
  char name[MPI_MAX_LIBRARY_VERSION_STRING];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Get_library_version(name, &length);
  name[strcspn(name, "\r\n")] = '\0';
  if (rank == 0) printf("library %s\n", name);
  for (int i = 1; i < argc; ++i) {
    const long bytes = atol(argv[i]);
    float* values = bytes > 0 ? calloc((size_t)bytes, 1) : NULL;
    if (values == NULL) {
      fprintf(stderr, "no memory for a vector of %s bytes\n", argv[i]);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    const double us = median_us(values, bytes);
    if (rank == 0) printf("%ld %.3f\n", bytes, us);
    free(values);
  }
  MPI_Finalize();
  return 0;
}
