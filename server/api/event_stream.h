// One call of WorkerService.StreamEvents: batches up, durable acknowledgements down.

#ifndef SERVER_API_EVENT_STREAM_H_
#define SERVER_API_EVENT_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "assay/v1/worker_service.pb.h"

#include "common/mutex.h"
#include "server/api/services.h"
#include "server/auth/identity.h"

namespace assay::api {

// Hands each batch to the core as it comes and reads on, up to a limit of batches and bytes that
// wait for their commit. Acknowledgements of one node are merged while a write is under way: the
// last says it all. The first refused batch ends the stream, after the acknowledgements of those
// before it. Deletes itself when the call is over.
class EventStream final : public grpc::ServerBidiReactor<v1::EventBatch, v1::EventAck> {
 public:
  // `backend` must outlive it. A refused `admission` ends the call at once.
  EventStream(const Backend* backend, const absl::StatusOr<auth::Identity>& admission);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { delete this; }

 private:
  using Node = std::pair<std::string, int32_t>;  // run, node_rank

  struct State {
    bool is_reading = false;     // gRPC fills batch_
    bool is_submitting = false;  // batch_ is being handed over; the next read must wait
    bool is_writing = false;     // gRPC sends ack_
    bool is_read_out = false;    // the client sends no more
    bool is_cancelled = false;
    bool is_finished = false;
    int waiting_batches = 0;  // in the core; their callbacks hold this object
    size_t waiting_bytes = 0;
    std::map<Node, int64_t> acks;  // durable, not yet told
    absl::Status status;           // of the first refused batch
  };
  // What to do once the mutex is released; see PullStream for why.
  struct Actions {
    bool read = false;
    bool write = false;
    bool finish = false;
    absl::Status status;
  };

  template <typename Change>
  void Step(Change change);
  static Actions Decide(State* state);
  void Submit(core::AppendRunEvents command, size_t bytes);
  void Committed(const Node& node, size_t bytes, absl::StatusOr<core::Reply> reply);

  const Backend* const backend_;
  const std::string worker_;
  const int64_t certificate_generation_;

  v1::EventBatch batch_;  // gRPC's while is_reading
  v1::EventAck ack_;      // gRPC's while is_writing

  Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace assay::api

#endif  // SERVER_API_EVENT_STREAM_H_
