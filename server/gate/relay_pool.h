// The threads that carry the connections of known clients, apart from the thread that meets
// strangers: what those do costs the others nothing.

#ifndef SERVER_GATE_RELAY_POOL_H_
#define SERVER_GATE_RELAY_POOL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

#include "server/auth/authenticator.h"
#include "server/gate/stream.h"

namespace assay::gate {

// Thread-safe.
class RelayPool {
 public:
  // May a client with this evidence still be connected? Called on the pool's threads, for each
  // connection about once a second.
  using Admit = std::function<absl::Status(const auth::Evidence&)>;

  // `message_bytes_max`: of one message of a call; a client that sends a longer one is cut off.
  RelayPool(Admit admit, uint32_t message_bytes_max);
  // Ends all connections: those that gRPC has ended may deliver their last bytes, for a second.
  ~RelayPool();
  RelayPool(const RelayPool&) = delete;
  RelayPool& operator=(const RelayPool&) = delete;

  struct Connection {
    Stream client;
    Stream server;  // our end of the pair whose other end gRPC has
    auth::Evidence evidence;
    std::string peer;                    // for the log
    absl::AnyInvocable<void()> on_over;  // once, on one of the pool's threads or in its destructor
  };
  // Begins to carry it.
  void Add(Connection connection);

 private:
  class Thread;

  const Admit admit_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::atomic<size_t> next_ = 0;  // of threads_, in turn
};

}  // namespace assay::gate

#endif  // SERVER_GATE_RELAY_POOL_H_
