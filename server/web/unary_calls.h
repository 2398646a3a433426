// Calls of the coordinator that end with one message, on their way at the same time.

#ifndef SERVER_WEB_UNARY_CALLS_H_
#define SERVER_WEB_UNARY_CALLS_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

#include "common/client/client.h"
#include "common/mutex.h"
#include "server/web/disposal.h"

namespace assay::web {

// Thread-safe.
class UnaryCalls {
 public:
  // What came back; the buffer is there if the status is OK. Called once, on a thread of gRPC.
  using Done = std::function<void(const absl::Status& status, grpc::ByteBuffer* response)>;

  explicit UnaryCalls(size_t count_max) : count_max_(count_max) {}
  // As Stop.
  ~UnaryCalls();
  UnaryCalls(const UnaryCalls&) = delete;
  UnaryCalls& operator=(const UnaryCalls&) = delete;

  // Calls `method` as `client`. False, and `done` is not called, if there are `count_max` already
  // or Stop was called.
  bool Start(std::shared_ptr<const client::Client> client, const std::string& method,
             grpc::ByteBuffer request, Done done);

  // Ends all, and blocks until all have said so. Idempotent.
  void Stop();

 private:
  struct Call;
  void Remove(Call* call);

  const size_t count_max_;
  Mutex mutex_;
  CondVar gone_;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<Call*, std::shared_ptr<Call>> calls_ ABSL_GUARDED_BY(mutex_);
  Disposal disposal_;  // of calls, and so of connections
};

}  // namespace assay::web

#endif  // SERVER_WEB_UNARY_CALLS_H_
