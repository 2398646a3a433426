// Memory that the ranks of one machine have in common: through it they add vectors without sending
// messages (worker/comm/shared_reduction.h).
//
// It is a file of /dev/shm for this user alone, with a name that nobody can guess, and without any
// name once all ranks have it. Each rank has a line, by which it tells the others how far it is,
// and two slots, which it alone writes.

#ifndef WORKER_COMM_SHARED_AREA_H_
#define WORKER_COMM_SHARED_AREA_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace assay::comm {

class SharedArea {
 public:
  // Ranks that share one, at most.
  static constexpr int kRanksMax = 128;
  // Of one slot. Small enough that those of a few ranks stay in a processor's cache.
  static constexpr size_t kSlotBytes = size_t{512} << 10;

  // How far a rank is. Steps are counted from 1, over all operations; each rank writes its own
  // line.
  struct alignas(64) Line {
    std::atomic<uint64_t> entered;               // the last step whose terms are in the rank's slot
    std::atomic<uint64_t> reduced;               // the last step whose sums are there
    std::array<std::atomic<uint64_t>, 2> bytes;  // of the operation that the step is of, by slot
    // In the place of the slots, for vectors so short that fetching another line would double their
    // time.
    std::array<std::array<std::byte, 16>, 2> terms;
  };
  static_assert(sizeof(Line) == 64);
  static_assert(std::atomic<uint64_t>::is_always_lock_free);

  // Makes one for `world_size` ranks. RESOURCE_EXHAUSTED: /dev/shm has no room; else as the system
  // says.
  static absl::StatusOr<std::unique_ptr<SharedArea>> Create(int world_size);
  // That of another process of this machine and user.
  static absl::StatusOr<std::unique_ptr<SharedArea>> Open(const std::string& name, int world_size);

  ~SharedArea();  // takes the name away, if this rank made it
  SharedArea(const SharedArea&) = delete;
  SharedArea& operator=(const SharedArea&) = delete;

  const std::string& name() const { return name_; }
  // All ranks have it: nobody else comes in.
  void TakeNameAway();

  Line& line(int rank) const { return lines_[rank]; }
  // The slot of `rank` for `step`.
  std::span<std::byte> Slot(int rank, uint64_t step) const;

  // Of whoever adds: steps that this rank has taken part in, and of them the last that it has
  // reduced, which its line tells with the next step that it enters.
  uint64_t step_count = 0;
  uint64_t reduced_step = 0;
  // Whether terms are better written past the caches (ChooseStores).
  bool is_past_caches = false;

 private:
  SharedArea(std::string name, bool is_maker, int world_size, void* mapping);

  std::string name_;
  bool is_maker_;
  const int world_size_;
  std::byte* const mapping_;
  Line* const lines_;
};

}  // namespace assay::comm

#endif  // WORKER_COMM_SHARED_AREA_H_
