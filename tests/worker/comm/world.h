// Runs one function per rank, each on its own thread, over any transport.

#ifndef TESTS_WORKER_COMM_WORLD_H_
#define TESTS_WORKER_COMM_WORLD_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "worker/comm/collective.h"

namespace assay::comm::testing {

inline constexpr absl::Duration kPatience = absl::Seconds(20);

inline MonoTime Soon() {
  return RealClock().Mono() + kPatience;
}

using World = std::vector<std::unique_ptr<Collective>>;

// How a suite gets its ranks. `open` blocks until all are connected.
struct Transport {
  std::string name;
  std::function<World(int world_size, const Clock* clock)> open;
};

inline void PrintTo(const Transport& transport, std::ostream* out) {
  *out << transport.name;
}

// Calls `body` once per rank, at the same time, and waits for all.
inline void OnEveryRank(const World& world, const std::function<void(Collective*)>& body) {
  std::vector<std::thread> threads;
  for (const std::unique_ptr<Collective>& comm : world) {
    threads.emplace_back([&body, comm = comm.get()] { body(comm); });
  }
  for (std::thread& thread : threads)
    thread.join();
}

}  // namespace assay::comm::testing

#endif  // TESTS_WORKER_COMM_WORLD_H_
