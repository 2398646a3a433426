// Brings a channel's connection back while no call is under way.

#ifndef WORKER_AGENT_CONNECTION_KEEPER_H_
#define WORKER_AGENT_CONNECTION_KEEPER_H_

#include <grpcpp/channel.h>

#include <atomic>
#include <memory>
#include <thread>

namespace assay::agent {

// gRPC moves a handshake on only while some thread waits on the channel, and else every 5 s. An
// agent whose calls fail at once and which pauses between them would so need 15 s for the three
// steps of a TLS connection to a coordinator that was away for a tenth of a second. The keeper's
// thread always waits on the channel.
class ConnectionKeeper {
 public:
  explicit ConnectionKeeper(std::shared_ptr<grpc::Channel> channel);
  ~ConnectionKeeper();  // within a second

 private:
  void Loop();

  const std::shared_ptr<grpc::Channel> channel_;
  std::atomic<bool> is_stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_CONNECTION_KEEPER_H_
