// Collective: the ranks of one training run, and messages between them.
//
// A transport (worker/comm/ucx.h, memory.h, single.h) implements messages; the collective
// operations are free functions over them (worker/comm/ring.h). One process is one rank.
//
// Failure is final. When a peer dies or a deadline passes, the operation at hand fails, every
// outstanding request is cancelled (its buffer is not touched any more), and each later call
// reports the same status again. The process then ends with ExitCode::kCommLost; nothing is
// repaired.
//
// One thread at a time; it need not always be the same thread.

#ifndef WORKER_COMM_COLLECTIVE_H_
#define WORKER_COMM_COLLECTIVE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include "common/clock.h"
#include "worker/comm/protection.h"
#include "worker/comm/shared_area.h"

namespace assay::comm {

// Ranks in one communicator, at most. Each keeps a connection to every other.
inline constexpr int kMaxWorldSize = 1024;

// Requests started and not yet waited for, at most.
inline constexpr int kMaxRequests = 4096;

// Which message is meant. Tags from kFirstCollectiveTag on belong to ring.h.
using Tag = uint32_t;
inline constexpr Tag kFirstCollectiveTag = Tag{1} << 31;

// The other end of a message and what it is about.
struct Envelope {
  int peer = 0;
  Tag tag = 0;
};

// A message under way; valid until waited for. Default: one that is complete.
struct Request {
  int slot = -1;
};

class Collective {
 public:
  virtual ~Collective() = default;
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

  int rank() const { return rank_; }
  int world_size() const { return world_size_; }

  // Where `peer` runs, for messages: "rank 2 (node7, pid 4711)".
  virtual std::string Describe(int peer) const = 0;

  // What keeps strangers' messages out. The same on all ranks.
  virtual Protection protection() const { return Protection::kOneProcess; }

  // Starts to send `bytes`, which must stay unchanged until Wait returns. Messages with one tag
  // between two ranks arrive in the order of their start. Never blocks; errors come from Wait.
  // `to.peer` must be another rank of this world.
  Request StartSend(Envelope to, std::span<const std::byte> bytes);

  // Starts to receive a message of exactly `bytes.size()` bytes into `bytes`, which is undefined
  // until Wait returns. Never blocks; errors come from Wait.
  Request StartReceive(Envelope from, std::span<std::byte> bytes);

  // Blocks until `request` is complete; then its slot is free.
  //   DEADLINE_EXCEEDED: not complete by `deadline`. UNAVAILABLE: a rank went away.
  //   DATA_LOSS: the message has another length: the ranks are not in the same operation.
  //   UNAUTHENTICATED: no rank of this world sent the message.
  absl::Status Wait(Request request, MonoTime deadline);

  // Memory that all ranks of this world share; null where they have none. Operations may use it in
  // the place of messages (worker/comm/shared_reduction.h), all ranks alike.
  virtual SharedArea* shared_area() { return nullptr; }

  // Blocks until `is_there` says so, which looks whether `peer` has done its part in the shared
  // area; messages go on meanwhile. Errors as Wait's.
  absl::Status Await(absl::FunctionRef<bool()> is_there, int peer, MonoTime deadline);

  // Ends this communicator with an error that an operation has found, and returns that.
  virtual absl::Status Fail(absl::Status status) { return Latch(std::move(status)); }

  // Ends the communicator in order: blocks until every rank has called Close and all messages are
  // delivered. Errors as Wait's. Destroying without Close looks like a death to the other ranks.
  // A second call does nothing.
  absl::Status Close(MonoTime deadline);

  // An operation made of messages says when it begins and ends (Operation, below), so that whoever
  // stands between can count it (worker/comm/counting.h). `bytes`: what it is about.
  virtual void OperationBegins(size_t bytes) { static_cast<void>(bytes); }
  virtual void OperationEnds() {}
  // An operation has written so much into the shared area.
  virtual void Shared(size_t bytes) { static_cast<void>(bytes); }

  // OK, or the failure that ended this communicator.
  const absl::Status& failure() const { return failure_; }

  // A tag for the next collective operation. Every rank runs the same operations in the same
  // order, so all agree on it.
  Tag NextTag();

  // At least `size` bytes of working memory, aligned to 64, the same at each call: valid until the
  // next call. Kept because fresh pages would cost more than the transfer.
  std::span<std::byte> Scratch(size_t size);

 protected:
  Collective(int rank, int world_size);

 private:
  virtual Request DoStartSend(Envelope to, std::span<const std::byte> bytes) = 0;
  virtual Request DoStartReceive(Envelope from, std::span<std::byte> bytes) = 0;
  virtual absl::Status DoWait(Request request, MonoTime deadline) = 0;
  // Of those that have a shared area.
  virtual absl::Status DoAwait(absl::FunctionRef<bool()> is_there, int peer, MonoTime deadline);
  virtual absl::Status DoClose(MonoTime deadline) = 0;
  // Cancels every outstanding request: afterwards no buffer of the caller is touched.
  virtual void DoAbort() = 0;

  absl::Status Latch(absl::Status status);
  void CheckPeer(int peer) const;

  const int rank_;
  const int world_size_;
  absl::Status failure_;
  bool is_closed_ = false;
  Tag operation_count_ = 0;
  struct FreeAligned {
    void operator()(std::byte* bytes) const;
  };
  std::unique_ptr<std::byte[], FreeAligned> scratch_;
  size_t scratch_size_ = 0;
};

// Says that an operation begins, and with its life that it ends.
class Operation {
 public:
  Operation(Collective* comm, size_t bytes) : comm_(comm) { comm_->OperationBegins(bytes); }
  ~Operation() { comm_->OperationEnds(); }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

 private:
  Collective* const comm_;
};

// StartSend and Wait in one.
absl::Status Send(Collective* comm, Envelope to, std::span<const std::byte> bytes,
                  MonoTime deadline);

// StartReceive and Wait in one.
absl::Status Receive(Collective* comm, Envelope from, std::span<std::byte> bytes,
                     MonoTime deadline);

}  // namespace assay::comm

#endif  // WORKER_COMM_COLLECTIVE_H_
