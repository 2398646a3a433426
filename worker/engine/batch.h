// One local batch on the host, as the trainer hands it to a model.

#ifndef WORKER_ENGINE_BATCH_H_
#define WORKER_ENGINE_BATCH_H_

#include <cstddef>
#include <span>

#include "common/cache_place.h"

namespace assay {

// Borrowed: whole samples, batch first, in the types of the model's input and of its objective's
// targets.
struct Batch {
  std::span<const std::byte> input;
  std::span<const std::byte> targets;
  // Of each sample; empty: none is kept on the device. The input of one that is there may hold
  // anything, its targets may not.
  std::span<const CachePlace> cache = {};
};

}  // namespace assay

#endif  // WORKER_ENGINE_BATCH_H_
