// Where the trainer gets its batches from.

#ifndef WORKER_DATA_BATCH_SOURCE_H_
#define WORKER_DATA_BATCH_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

#include "common/cache_place.h"

namespace assay::data {

// Samples one after the other, in the types of their format (worker/data/sample_format.h).
struct Batch {
  std::vector<std::byte> input;
  std::vector<std::byte> targets;
  std::vector<CachePlace> cache;  // of each sample; of those that are there `input` holds anything
  int size = 0;                   // samples

  template <typename T>
  std::span<const T> Input() const {
    return {reinterpret_cast<const T*>(input.data()), input.size() / sizeof(T)};
  }
  template <typename T>
  std::span<const T> Targets() const {
    return {reinterpret_cast<const T*>(targets.data()), targets.size() / sizeof(T)};
  }
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
