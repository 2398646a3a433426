// A stream of the coordinator as an HTTP response that goes on: each message is read when the
// client has the last one, so that a slow client holds one message and the coordinator's windows
// fill.

#ifndef SERVER_WEB_RPC_STREAM_H_
#define SERVER_WEB_RPC_STREAM_H_

#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/client/client.h"
#include "common/mutex.h"
#include "server/web/disposal.h"
#include "server/web/http.h"

namespace assay::web {

struct RpcStreamOptions {
  std::shared_ptr<const client::Client> client;  // as whom
  std::string method;                            // /assay.v1.SubmissionService/WatchRunEvents
  grpc::ByteBuffer request;
  HttpResponse head;
  std::string heartbeat;
  // What is sent of a message, and at the end; on threads of gRPC, one at a time. Empty text sends
  // nothing.
  std::function<std::string(grpc::ByteBuffer*)> format;
  std::function<std::string(const absl::Status&)> end;
};

// The streams of a site. Thread-safe.
//
// They go over connections of their own, kOfConnectionMax over each: the coordinator takes 100
// calls at a time over one (server/api/server.cc), and what is asked beside streams must not wait
// for them.
class RpcStreams {
 public:
  static constexpr size_t kOfConnectionMax = 80;

  explicit RpcStreams(size_t count_max) : count_max_(count_max) {}
  // As Stop.
  ~RpcStreams();
  RpcStreams(const RpcStreams&) = delete;
  RpcStreams& operator=(const RpcStreams&) = delete;

  // Opens the response and begins the call. False, and nothing is sent, if there are `count_max`
  // already, or Stop was called.
  bool Start(RpcStreamOptions options, const std::shared_ptr<Exchange>& exchange);

  // Ends all, and blocks until none is left. Only once the HTTP server has been shut down.
  // Idempotent.
  void Stop();

  size_t size() const;

 private:
  class Stream;
  class Source;
  // A connection that streams of one client share.
  struct Lane {
    std::shared_ptr<const client::Client> owner;   // as whom
    std::shared_ptr<const client::Client> client;  // the same, over this connection
    size_t stream_count = 0;
  };

  // The connection that a further stream of `owner` goes over.
  absl::StatusOr<std::shared_ptr<Lane>> LaneFor(const std::shared_ptr<const client::Client>& owner)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The streams whose response never began, so that nobody else will end them.
  std::vector<std::shared_ptr<Stream>> CancelAll();
  // Forgets a stream of which gRPC knows nothing more.
  void Remove(std::shared_ptr<Stream> stream);

  const size_t count_max_;
  mutable Mutex mutex_;
  CondVar gone_;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<Stream*> streams_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Lane>> lanes_ ABSL_GUARDED_BY(mutex_);  // those in use
  Disposal disposal_;  // of streams, and so of connections
};

}  // namespace assay::web

#endif  // SERVER_WEB_RPC_STREAM_H_
