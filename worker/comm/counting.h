// Counts what goes through a Collective: operations, bytes and time, by the size of the operation.

#ifndef WORKER_COMM_COUNTING_H_
#define WORKER_COMM_COUNTING_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

#include "common/clock.h"
#include "worker/comm/collective.h"

namespace assay::comm {

// Operations by size: up to 8 KiB (a vector that goes whole to every peer, ring.h), up to 128 KiB
// (one slice of a ring), up to 1 MiB, up to 16 MiB, above.
inline constexpr std::array<size_t, 4> kSizeLimits = {size_t{8} << 10, size_t{128} << 10,
                                                      size_t{1} << 20, size_t{16} << 20};
inline constexpr size_t kSizeClassCount = kSizeLimits.size() + 1;

// The class of an operation on `bytes`, below kSizeClassCount.
size_t SizeClassOf(size_t bytes);
// "up to 8 KiB" ... "above 16 MiB"
absl::string_view SizeClassName(size_t size_class);

// Of one rank. Trivially copyable: it travels to other ranks as it is.
struct OperationCounts {
  int64_t operations = 0;
  int64_t bytes = 0;       // what the operations were about: of a reduction, its vector
  int64_t sent_bytes = 0;  // what this rank sent for them, or wrote into shared memory
  int64_t ns = 0;          // from beginning to end; whoever called computed nothing meanwhile
};

struct Traffic {
  std::array<OperationCounts, kSizeClassCount> by_size = {};
  int64_t waiting_ns = 0;  // the part of it in which this rank waited for messages
};

// Passes everything on to another Collective and counts it. Costs two readings of the clock for
// each operation and each wait. Messages outside of any operation count in `sent_bytes` of the
// class of their own size, and in `waiting_ns`.
class CountingCollective final : public Collective {
 public:
  // `clock` must outlive it.
  CountingCollective(std::unique_ptr<Collective> inner, const Clock* clock);

  const Traffic& traffic() const { return traffic_; }

  std::string Describe(int peer) const override { return inner_->Describe(peer); }
  Protection protection() const override { return inner_->protection(); }
  void OperationBegins(size_t bytes) override;
  void OperationEnds() override;
  void Shared(size_t bytes) override;
  SharedArea* shared_area() override { return inner_->shared_area(); }
  absl::Status Fail(absl::Status status) override {
    return Collective::Fail(inner_->Fail(std::move(status)));
  }

 private:
  Request DoStartSend(Envelope to, std::span<const std::byte> bytes) override;
  Request DoStartReceive(Envelope from, std::span<std::byte> bytes) override;
  absl::Status DoWait(Request request, MonoTime deadline) override;
  absl::Status DoAwait(absl::FunctionRef<bool()> is_there, int peer, MonoTime deadline) override;
  absl::Status DoClose(MonoTime deadline) override;
  void DoAbort() override {}  // it was the inner one that failed, and it has done so

  const std::unique_ptr<Collective> inner_;
  const Clock* const clock_;
  Traffic traffic_;
  int depth_ = 0;          // of operations within operations: the outermost counts
  size_t size_class_ = 0;  // of the operation at hand
  MonoTime begin_;         // of the operation at hand
};

}  // namespace assay::comm

#endif  // WORKER_COMM_COUNTING_H_
