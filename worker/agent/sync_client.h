// Synchronize, one call at a time, on a thread of its own.

#ifndef WORKER_AGENT_SYNC_CLIENT_H_
#define WORKER_AGENT_SYNC_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

#include "assay/v1/worker_service.grpc.pb.h"

#include "common/clock.h"
#include "common/mutex.h"
#include "common/node_clock.h"
#include "common/rpc/channel.h"
#include "worker/agent/call_slot.h"
#include "worker/agent/clock_offset.h"
#include "worker/agent/clock_watch.h"

namespace assay::agent {

// Thread-safe. After each Call exactly one callback follows, unless another Call replaces it or the
// client is destroyed. Callbacks run on the client's thread and must not block.
class SyncClient {
 public:
  struct Callbacks {
    std::function<void(int64_t call, const v1::DesiredState&)> on_reply;
    // After the back-off has passed.
    std::function<void(int64_t call, const absl::Status&)> on_failure;
  };

  // `clock` must outlive the client.
  SyncClient(v1::WorkerService::StubInterface* stub, Endpoint endpoint, const Clock* clock,
             Callbacks callbacks);
  ~SyncClient();  // ends the call under way

  // Sends `request`, whose stamps and clock offset are filled in here. A call under way is given up
  // if its status differs. The coordinator's wish to be called later is respected, unless the
  // status is news to it. Returns the call's number: 1, 2, 3...
  int64_t Call(v1::SynchronizeRequest request) ABSL_LOCKS_EXCLUDED(mutex_);

  // How far this node's clock was from the coordinator's at the replies since the last time that
  // somebody asked, the first hundred.
  std::vector<ClockSample> TakeClockSamples() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Request {
    int64_t call = 0;
    v1::SynchronizeRequest proto;
  };
  void Loop();
  bool TakeRequest(Request* request) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Perform(v1::SynchronizeRequest request, v1::SynchronizeResponse* response);
  void Sample(int64_t send_ns, const ClockReading& now, const v1::SynchronizeResponse& response)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Finish(const Request& request, const absl::Status& status,
              const v1::SynchronizeResponse& response);
  bool IsOvertaken() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits, but not once there is another request or the client ends; false then.
  bool Pause(absl::Duration duration) ABSL_LOCKS_EXCLUDED(mutex_);

  // Constant after construction.
  v1::WorkerService::StubInterface* const stub_;
  const Endpoint endpoint_;
  const Clock* const clock_;
  const Callbacks callbacks_;
  CallSlot slot_;
  // Of the thread.
  ClockOffset offset_;
  int failure_count_ = 0;
  // Guarded.
  Mutex mutex_;
  CondVar changed_;
  int64_t call_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<Request> next_ ABSL_GUARDED_BY(mutex_);
  std::string current_status_ ABSL_GUARDED_BY(mutex_);  // serialized; of the last call
  MonoTime not_before_ ABSL_GUARDED_BY(mutex_);
  std::vector<ClockSample> samples_ ABSL_GUARDED_BY(mutex_);
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_SYNC_CLIENT_H_
