#include "tests/worker/comm/memory_world.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/status.h"

namespace assay::comm {
namespace {

// A clock that tests move by hand does not wake anybody, so the clock is read at least this often.
constexpr absl::Duration kClockCheckInterval = absl::Milliseconds(20);

struct Route {
  int source = 0;
  int target = 0;
  Tag tag = 0;
  auto operator<=>(const Route&) const = default;
};

// Messages of one route are numbered by both ends, so the n-th receive gets the n-th message in
// whatever order they are waited for.
struct Lane {
  uint64_t sent_count = 0;
  uint64_t receive_count = 0;
  std::map<uint64_t, std::vector<std::byte>> messages;
};

// What the ranks of one world share. Thread-safe.
class Hub {
 public:
  Hub(int world_size, const Clock* clock) : world_size_(world_size), clock_(clock) {}

  void Post(const Route& route, std::span<const std::byte> bytes) {
    MutexLock lock(&mutex_);
    Lane& lane = lanes_[route];
    lane.messages.emplace(lane.sent_count++, std::vector<std::byte>(bytes.begin(), bytes.end()));
    changed_.NotifyAll();
  }

  uint64_t Reserve(const Route& route) {
    MutexLock lock(&mutex_);
    return lanes_[route].receive_count++;
  }

  // The message `number` of `route`, copied to `bytes`.
  absl::Status Take(const Route& route, uint64_t number, std::span<std::byte> bytes,
                    MonoTime deadline) {
    MutexLock lock(&mutex_);
    Lane& lane = lanes_[route];
    while (!lane.messages.contains(number)) {
      RETURN_IF_ERROR(CheckAlive());
      if (!WaitUntil(deadline)) {
        return absl::DeadlineExceededError(absl::StrFormat(
            "rank %d: no message from rank %d (a thread of this process) before the deadline",
            route.target, route.source));
      }
    }
    const std::vector<std::byte>& message = lane.messages.at(number);
    if (message.size() != bytes.size()) {
      return absl::DataLossError(absl::StrFormat(
          "rank %d: rank %d sent %d bytes where %d are expected: the ranks disagree about the "
          "operation",
          route.target, route.source, message.size(), bytes.size()));
    }
    if (!bytes.empty()) std::memcpy(bytes.data(), message.data(), bytes.size());
    lane.messages.erase(number);
    return absl::OkStatus();
  }

  absl::Status Close(int rank, MonoTime deadline) {
    MutexLock lock(&mutex_);
    ++closed_count_;
    changed_.NotifyAll();
    while (closed_count_ < world_size_) {
      RETURN_IF_ERROR(CheckAlive());
      if (!WaitUntil(deadline)) {
        return absl::DeadlineExceededError(absl::StrFormat(
            "rank %d: %d of %d ranks have not closed the communicator before the deadline", rank,
            world_size_ - closed_count_, world_size_));
      }
    }
    return absl::OkStatus();
  }

  void MarkDead(int rank) {
    MutexLock lock(&mutex_);
    dead_rank_ = rank;
    changed_.NotifyAll();
  }

 private:
  absl::Status CheckAlive() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (dead_rank_ < 0) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrFormat("rank %d (a thread of this process) went away", dead_rank_));
  }

  // False once `deadline` has passed.
  bool WaitUntil(MonoTime deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const absl::Duration left = deadline - clock_->Mono();
    if (left <= absl::ZeroDuration()) return false;
    changed_.WaitFor(&mutex_, absl::ToChronoNanoseconds(std::min(left, kClockCheckInterval)));
    return true;
  }

  const int world_size_;
  const Clock* const clock_;
  Mutex mutex_;
  CondVar changed_;
  std::map<Route, Lane> lanes_ ABSL_GUARDED_BY(mutex_);
  int closed_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int dead_rank_ ABSL_GUARDED_BY(mutex_) = -1;
};

class Memory final : public Collective {
 public:
  // `hub` is shared by the ranks of the world: the last one deletes it.
  Memory(int rank, int world_size, std::shared_ptr<Hub> hub)
      : Collective(rank, world_size), hub_(std::move(hub)) {}

  ~Memory() override {
    if (!closed_in_order_) hub_->MarkDead(rank());
  }

  std::string Describe(int peer) const override {
    return absl::StrCat("rank ", peer, " (a thread of this process)");
  }

 private:
  struct Pending {
    Route route;
    uint64_t number = 0;
    std::span<std::byte> bytes;
  };

  Request DoStartSend(Envelope to, std::span<const std::byte> bytes) override {
    hub_->Post(Route{.source = rank(), .target = to.peer, .tag = to.tag}, bytes);
    return {};
  }

  Request DoStartReceive(Envelope from, std::span<std::byte> bytes) override {
    CHECK(pending_.size() < kMaxRequests) << "requests=" << pending_.size();
    const Route route{.source = from.peer, .target = rank(), .tag = from.tag};
    const int slot = next_slot_++;
    pending_[slot] = Pending{.route = route, .number = hub_->Reserve(route), .bytes = bytes};
    return Request{.slot = slot};
  }

  absl::Status DoWait(Request request, MonoTime deadline) override {
    const auto found = pending_.find(request.slot);
    CHECK(found != pending_.end()) << "slot=" << request.slot;
    const Pending pending = found->second;
    pending_.erase(found);
    return hub_->Take(pending.route, pending.number, pending.bytes, deadline);
  }

  absl::Status DoClose(MonoTime deadline) override {
    RETURN_IF_ERROR(hub_->Close(rank(), deadline));
    closed_in_order_ = true;
    return absl::OkStatus();
  }

  void DoAbort() override {
    pending_.clear();
    hub_->MarkDead(rank());
  }

  const std::shared_ptr<Hub> hub_;
  std::map<int, Pending> pending_;
  int next_slot_ = 0;
  bool closed_in_order_ = false;
};

}  // namespace

std::vector<std::unique_ptr<Collective>> OpenMemoryWorld(int world_size, const Clock* clock) {
  const auto hub = std::make_shared<Hub>(world_size, clock);
  std::vector<std::unique_ptr<Collective>> world;
  for (int rank = 0; rank < world_size; ++rank) {
    world.push_back(std::make_unique<Memory>(rank, world_size, hub));
  }
  return world;
}

}  // namespace assay::comm
