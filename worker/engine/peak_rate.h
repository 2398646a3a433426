// The highest rates that this process can reach on the host, measured: of fp32 arithmetic and of
// memory.

#ifndef WORKER_ENGINE_PEAK_RATE_H_
#define WORKER_ENGINE_PEAK_RATE_H_

#include "common/clock.h"

namespace assay {

struct PeakRate {
  double flops_per_s = 0;  // a multiply-add is two; 0: could not be measured
  double bytes_per_s = 0;  // read and written together; 0: could not be measured
  int threads = 0;
};

// Multiply-adds in registers, and copies of memory that no cache holds, on the threads that the
// backends of the host use, all at once; the best of several trials. Takes 64 MiB for each thread
// meanwhile, and 50 to 200 ms. What else runs on these cores lowers it.
PeakRate MeasurePeakRate(const Clock* clock);

}  // namespace assay

#endif  // WORKER_ENGINE_PEAK_RATE_H_
