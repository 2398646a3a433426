// Where the trainer gets its batches from.

#ifndef WORKER_DATA_BATCH_SOURCE_H_
#define WORKER_DATA_BATCH_SOURCE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace assay::data {

struct Batch {
  std::vector<int16_t> voxels;  // (size, D, H, edge, 4), raw counts: ln(1 + n) comes later
  std::vector<float> targets;   // (size, 4)
  int size = 0;                 // samples
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // The next batch; blocks until it is there. It stays valid, and is the caller's to read, until
  // the next call. OUT_OF_RANGE: all batches have been delivered. Other codes: reading a sample
  // failed; every later call returns the same error.
  virtual absl::StatusOr<const Batch*> Next() = 0;
};

}  // namespace assay::data

#endif  // WORKER_DATA_BATCH_SOURCE_H_
