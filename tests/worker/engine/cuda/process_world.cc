#include "tests/worker/engine/cuda/process_world.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <utility>

namespace assay::cuda {
namespace {

constexpr size_t kRanksMax = 8;
constexpr size_t kCountMax = size_t{1} << 20;

// Zeros at first, which is what all of it begins as.
struct Area {
  std::atomic<int> joined;
  std::atomic<int64_t> arrived;  // at one of the two ends of an average, ever
  std::array<std::atomic<size_t>, kRanksMax> counts;
  std::array<std::array<float, kCountMax>, kRanksMax> numbers;
};
static_assert(std::atomic<int64_t>::is_always_lock_free);

class ProcessWorld : public HostWorld {
 public:
  ProcessWorld(std::string name, Area* area) : name_(std::move(name)), area_(area) {}
  ~ProcessWorld() override { munmap(area_, sizeof(Area)); }
  ProcessWorld(const ProcessWorld&) = delete;
  ProcessWorld& operator=(const ProcessWorld&) = delete;

  bool Join(int size, Deadline deadline) override {
    if (size > static_cast<int>(kRanksMax)) return false;
    if (++area_->joined == size) shm_unlink(name_.c_str());
    return Await(deadline, [&] { return area_->joined >= size; });
  }

  bool Mean(const Key& key, int size, int rank, Numbers* numbers, Deadline deadline) override {
    if (std::get<0>(key) || numbers->size() > kCountMax) return false;
    area_->counts.at(static_cast<size_t>(rank)) = numbers->size();
    std::ranges::copy(*numbers, area_->numbers.at(static_cast<size_t>(rank)).begin());
    if (!Meet(size, deadline)) return false;
    for (size_t from = 0; from < static_cast<size_t>(size); ++from)
      if (area_->counts.at(from) != numbers->size()) return false;
    for (size_t i = 0; i < numbers->size(); ++i) {
      double sum = 0;
      for (size_t from = 0; from < static_cast<size_t>(size); ++from)
        sum += double{area_->numbers.at(from).at(i)};
      (*numbers)[i] = static_cast<float>(sum / size);
    }
    return Meet(size, deadline);  // before anybody writes what others read
  }

  void Send(int, int, Numbers) override {}
  bool Receive(int, int, Numbers*, Deadline) override { return false; }

 private:
  template <typename F>
  static bool Await(Deadline deadline, const F& is_there) {
    while (!is_there()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  bool Meet(int size, Deadline deadline) {
    const int64_t all = int64_t{size} * ++meetings_;
    ++area_->arrived;
    return Await(deadline, [&] { return area_->arrived >= all; });
  }

  const std::string name_;
  Area* const area_;
  int64_t meetings_ = 0;
};

}  // namespace

std::string MakeProcessWorldId() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return "/assay_fake_ranks_" + std::to_string(getpid()) + "_" + std::to_string(now);
}

std::shared_ptr<HostWorld> OpenProcessWorld(const std::string& id) {
  const int file = shm_open(id.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return nullptr;
  const bool is_sized = ftruncate(file, sizeof(Area)) == 0;
  void* const memory =
      is_sized ? mmap(nullptr, sizeof(Area), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
               : MAP_FAILED;
  close(file);
  if (memory == MAP_FAILED) return nullptr;
  return std::make_shared<ProcessWorld>(id, static_cast<Area*>(memory));
}

}  // namespace assay::cuda
