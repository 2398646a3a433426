// One StreamEvents call: batches up, durable acknowledgements down, one batch at a time.

#ifndef WORKER_AGENT_EVENT_STREAM_H_
#define WORKER_AGENT_EVENT_STREAM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "assay/v1/worker_service.grpc.pb.h"

#include "common/rpc/channel.h"
#include "worker/agent/call_slot.h"
#include "worker/agent/machine.h"

namespace assay::agent {

// Not thread-safe, but `slot` may end its calls from any thread.
class EventStream {
 public:
  struct Source {
    RunKey key;
    int32_t node_rank = 0;
  };
  // Opens the stream; nothing is known of it yet. All pointers must outlive the stream.
  EventStream(v1::WorkerService::StubInterface* stub, const Endpoint& endpoint, Source source,
              CallSlot* slot);
  ~EventStream();  // ends the call

  const Source& source() const { return source_; }

  // Sends `events` (consecutive; may be empty: it asks where the coordinator stands) and waits
  // until they are durable there. The result is the last durable seq. After an error the stream is
  // of no use: ABORTED for a gap or a stale generation, NOT_FOUND for an unknown run, UNAVAILABLE
  // and others if the connection broke. Blocks.
  absl::StatusOr<int64_t> Send(std::vector<v1::RunEvent> events);

 private:
  absl::Status Fail();

  const Source source_;
  CallSlot* const slot_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriterInterface<v1::EventBatch, v1::EventAck>> stream_;
  bool is_finished_ = false;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_EVENT_STREAM_H_
