#include "tests/worker/engine/cuda/host_ranks.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>

#include "common/mutex.h"

namespace assay::cuda {
namespace {

using Clock = std::chrono::steady_clock;
using Numbers = std::vector<float>;

Fault Failed(const std::string& text) {
  return {.kind = FaultKind::kFailed, .text = text};
}

// Between threads of this process. Thread-safe.
class ThreadWorld : public HostWorld {
 public:
  bool Join(int size, Deadline deadline) override {
    const MutexLock lock(&mutex_);
    ++joined_;
    changed_.NotifyAll();
    while (joined_ < size)
      if (!Wait(deadline)) return false;
    return true;
  }

  bool Mean(const Key& key, int size, int rank, Numbers* numbers, Deadline deadline) override {
    const MutexLock lock(&mutex_);
    Round& round = rounds_[key];
    round.parts[rank] = *numbers;
    changed_.NotifyAll();
    while (static_cast<int>(round.parts.size()) < size)
      if (!Wait(deadline)) return false;
    std::vector<double> sums(numbers->size());
    for (const auto& [from, part] : round.parts) {
      if (part.size() != sums.size()) return false;
      for (size_t i = 0; i < sums.size(); ++i)
        sums[i] += double{part[i]};
    }
    std::ranges::transform(sums, numbers->begin(),
                           [size](double sum) { return static_cast<float>(sum / size); });
    if (++round.readers == size) rounds_.erase(key);
    return true;
  }

  void Send(int from, int to, Numbers numbers) override {
    const MutexLock lock(&mutex_);
    mail_[{from, to}].push_back(std::move(numbers));
    changed_.NotifyAll();
  }

  bool Receive(int from, int to, Numbers* numbers, Deadline deadline) override {
    const MutexLock lock(&mutex_);
    std::deque<Numbers>& box = mail_[{from, to}];
    while (box.empty())
      if (!Wait(deadline)) return false;
    *numbers = std::move(box.front());
    box.pop_front();
    return true;
  }

 private:
  struct Round {
    std::map<int, Numbers> parts;  // by rank
    int readers = 0;
  };

  bool Wait(Deadline deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return changed_.WaitFor(&mutex_, deadline - Clock::now()) || Clock::now() < deadline;
  }

  Mutex mutex_;
  CondVar changed_;
  int joined_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Key, Round> rounds_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<int, int>, std::deque<Numbers>> mail_ ABSL_GUARDED_BY(mutex_);
};

// The worlds of this process, by id.
class Worlds {
 public:
  std::string Make() {
    const MutexLock lock(&mutex_);
    const std::string id = "host " + std::to_string(worlds_.size());
    worlds_[id] = std::make_shared<ThreadWorld>();
    return id;
  }

  void Add(const std::string& id, std::shared_ptr<HostWorld> world) {
    const MutexLock lock(&mutex_);
    worlds_[id] = std::move(world);
  }

  std::shared_ptr<HostWorld> Find(const std::string& id) {
    const MutexLock lock(&mutex_);
    const auto found = worlds_.find(id);
    return found == worlds_.end() ? nullptr : found->second;
  }

 private:
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<HostWorld>> worlds_ ABSL_GUARDED_BY(mutex_);
};

Worlds& AllWorlds() {
  static auto* const worlds = new Worlds;
  return *worlds;
}

}  // namespace

std::string HostRanks::MakeId() {
  return AllWorlds().Make();
}

void HostRanks::AddWorld(const std::string& id, std::shared_ptr<HostWorld> world) {
  AllWorlds().Add(id, std::move(world));
}

Fault HostRanks::Join(const JoinOptions& options, std::unique_ptr<HostRanks>* ranks) {
  std::shared_ptr<HostWorld> world = AllWorlds().Find(options.id);
  if (world == nullptr) return Failed("another id");
  if (!world->Join(options.size, Clock::now() + options.timeout))
    return Failed("rank " + std::to_string(options.rank) + " of " + std::to_string(options.size) +
                  " has waited " + std::to_string(options.timeout.count()) +
                  " ms for all ranks to join");
  ranks->reset(new HostRanks(options, std::move(world)));
  return {};
}

Fault HostRanks::Average(const AverageCall& call) {
  const int size = call.in_group ? options_.group_size : options_.size;
  const int first = options_.rank - options_.rank % size;
  const int64_t before = averages_[call.in_group]++;
  Numbers numbers(call.values, call.values + call.count);
  if (!world_->Mean({call.in_group, first, before}, size, options_.rank, &numbers,
                    Clock::now() + options_.timeout))
    return Failed("the other ranks averaged nothing, or something else");
  std::ranges::copy(numbers, call.values);
  return {};
}

Fault HostRanks::Exchange(const ExchangeCall& call) {
  for (const ExchangeCall::Message& message : call.messages) {
    if (message.rank == options_.rank) return Failed("a message to itself");
    if (message.sent_count > 0)
      world_->Send(options_.rank, message.rank,
                   Numbers(message.sent, message.sent + message.sent_count));
  }
  for (const ExchangeCall::Message& message : call.messages) {
    if (message.received_count == 0) continue;
    Numbers numbers;
    if (!world_->Receive(message.rank, options_.rank, &numbers, Clock::now() + options_.timeout))
      return Failed("no message from rank " + std::to_string(message.rank));
    if (static_cast<int64_t>(numbers.size()) != message.received_count)
      return Failed("a message of another length from rank " + std::to_string(message.rank));
    std::ranges::copy(numbers, message.received);
  }
  return {};
}

}  // namespace assay::cuda
