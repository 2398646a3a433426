// A batch of any containers.

#ifndef TESTS_WORKER_ENGINE_MAKE_BATCH_H_
#define TESTS_WORKER_ENGINE_MAKE_BATCH_H_

#include <span>

#include "worker/engine/batch.h"

namespace assay {

template <typename Input, typename Target>
Batch MakeBatch(const Input& input, const Target& targets) {
  return {std::as_bytes(std::span(input)), std::as_bytes(std::span(targets))};
}

}  // namespace assay

#endif  // TESTS_WORKER_ENGINE_MAKE_BATCH_H_
