// Asynchronous copies from the host on a copy stream: the next batch is prefetched while a step
// computes.

#ifndef WORKER_ENGINE_ASYNC_COPIER_H_
#define WORKER_ENGINE_ASYNC_COPIER_H_

#include <cstddef>
#include <memory>
#include <span>

#include "absl/status/status.h"

#include "worker/engine/tensor.h"

namespace assay {

// Part of a backend that has memory of its own, and lives as long. Copies are made in the order in
// which they were begun. Not thread-safe; not between BeginSection and EndSection.
class AsyncCopier {
 public:
  virtual ~AsyncCopier() = default;

  // Begins to copy `dst.bytes()` bytes while work goes on. Until Await `host` must stay as it is;
  // until MakeWorkWaitForCopies `dst` is not to be used. An error: the copy could not be begun, and
  // no more should be.
  virtual absl::Status CopyAsync(const void* host, const Tensor& dst) = 0;
  // Work issued from now on comes after all copies begun so far. Does not block.
  virtual void MakeWorkWaitForCopies() = 0;
  // Copies begun from now on come after the work issued so far. Does not block.
  virtual void MakeCopiesWaitForWork() = 0;
  // Blocks until all copies are complete.
  virtual void Await() = 0;

  // Copies from `host` need no help of the processor for as long as the result lives; null: they do
  // as before, because it is small or the system allows no more such memory. Its end waits until
  // all copies are complete. Neither `host` nor the backend may end before it.
  virtual std::shared_ptr<void> Pin(std::span<std::byte> host) = 0;
};

}  // namespace assay

#endif  // WORKER_ENGINE_ASYNC_COPIER_H_
