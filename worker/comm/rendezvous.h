// Rendezvous: where the ranks of a run meet before they can talk to each other.
//
// A small key-value store (gloo's Store in spirit) through which addresses are exchanged, and the
// place where the death of a rank is noticed at once.

#ifndef WORKER_COMM_RENDEZVOUS_H_
#define WORKER_COMM_RENDEZVOUS_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/clock.h"

namespace assay::comm {

// One rank's view. Thread-safe.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  // This rank's address, numeric, as its way to rank 0 has it.
  virtual std::string local_host() const = 0;

  // Stores `value` under `key`, once: ALREADY_EXISTS if the key has another value.
  // INVALID_ARGUMENT if key or value are too long. DEADLINE_EXCEEDED, UNAVAILABLE as Get.
  virtual absl::Status Set(absl::string_view key, absl::string_view value, MonoTime deadline) = 0;

  // The value of `key`, once some rank has set it. While it waits it calls `poll`, often, so that
  // the caller can keep other work moving; `poll` must not block.
  // DEADLINE_EXCEEDED: nobody set it. UNAVAILABLE: a rank, or the store, went away.
  virtual absl::StatusOr<std::string> Get(absl::string_view key, MonoTime deadline,
                                          absl::FunctionRef<void()> poll) = 0;

  // As above, with nothing else to do.
  virtual absl::StatusOr<std::string> Get(absl::string_view key, MonoTime deadline) = 0;

  // OK while every rank that joined is there or has left in order; otherwise UNAVAILABLE, naming
  // the rank and its address. Cheap: meant for polling loops.
  virtual absl::Status Health() const = 0;

  // Ends this rank's part: from now on its absence is no failure. On rank 0 it waits until all
  // others have left too. DEADLINE_EXCEEDED names the ranks that have not.
  virtual absl::Status Leave(MonoTime deadline) = 0;
};

}  // namespace assay::comm

#endif  // WORKER_COMM_RENDEZVOUS_H_
