// Copies from the host that a backend makes beside its work, so that the next batch travels while a
// step computes.

#ifndef WORKER_ENGINE_SIDE_COPIES_H_
#define WORKER_ENGINE_SIDE_COPIES_H_

#include <cstddef>
#include <memory>
#include <span>

#include "absl/status/status.h"

#include "worker/engine/tensor.h"

namespace assay {

// Part of a backend that has memory of its own, and lives as long. Copies are made in the order in
// which they were sent. Not thread-safe; not between BeginSection and EndSection.
class SideCopies {
 public:
  virtual ~SideCopies() = default;

  // Begins to copy `dst.bytes()` bytes, beside the work under way. Until Await `host` must stay as
  // it is; until Receive `dst` is not to be used. An error: it could not be begun, and nothing more
  // should be sent.
  virtual absl::Status Send(const void* host, const Tensor& dst) = 0;
  // Work issued from now on comes after all that was sent. Does not wait.
  virtual void Receive() = 0;
  // What is sent from now on comes after the work issued so far. Does not wait.
  virtual void Hold() = 0;
  // Waits until all that was sent is there.
  virtual void Await() = 0;

  // Copies from `host` need no help of the processor for as long as the result lives; null: they do
  // as before, because it is small or the system allows no more such memory. Waits at its end until
  // all that was sent is there. Neither `host` nor the backend may end before it.
  virtual std::shared_ptr<void> Pin(std::span<std::byte> host) = 0;
};

}  // namespace assay

#endif  // WORKER_ENGINE_SIDE_COPIES_H_
