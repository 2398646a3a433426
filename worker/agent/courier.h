// Brings events and artifacts of all held runs to the coordinator, on a thread of its own, and
// tries again until it has them.

#ifndef WORKER_AGENT_COURIER_H_
#define WORKER_AGENT_COURIER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

#include "assay/v1/worker_service.grpc.pb.h"

#include "common/clock.h"
#include "common/mutex.h"
#include "common/rpc/channel.h"
#include "worker/agent/call_slot.h"
#include "worker/agent/event_spool.h"
#include "worker/agent/event_stream.h"
#include "worker/agent/machine.h"
#include "worker/agent/run_recorder.h"

namespace assay::agent {

// Thread-safe. Callbacks run on the courier's thread and must not block. Events of a run go before
// its artifacts.
class Courier {
 public:
  struct Callbacks {
    std::function<void(const RunKey&, int64_t durable_seq)> on_acked;
    std::function<void(const RunKey&, const UploadedFile&)> on_uploaded;
    std::function<void(const RunKey&, const absl::Status&)> on_refused;
  };

  // `clock` must outlive the courier.
  Courier(v1::WorkerService::StubInterface* stub, Endpoint endpoint, const Clock* clock,
          Callbacks callbacks);
  ~Courier();  // ends what is under way; nothing that was not acknowledged is lost from disk

  // The spool has durable events that may not be acknowledged. Repeats are harmless.
  void DeliverEvents(const RunKey& key, int32_t node_rank, std::shared_ptr<const EventSpool> spool)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Repeats are harmless: a file that is uploaded or waits already is not queued again.
  void DeliverFiles(const RunKey& key, const std::vector<ArtifactFile>& files)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Nothing more is to be delivered for the run.
  void Drop(const RunKey& key) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Load {
    int32_t node_rank = 0;
    std::shared_ptr<const EventSpool> spool;  // shared with the recorder, which appends
    int64_t acked_seq = -1;                   // -1: not asked yet
    int aborted_count = 0;                    // in a row
    bool is_refused = false;
    std::map<std::string, ArtifactFile> files;      // waiting
    std::map<std::string, UploadedFile> delivered;  // done
  };
  struct Task {
    EventStream::Source source;
    std::shared_ptr<const EventSpool> spool;  // null: upload `file`
    int64_t acked_seq = -1;
    ArtifactFile file;
  };

  void Loop();
  bool TakeTask(Task* task) ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<Task> FindTask() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Perform(const Task& task);
  absl::Status SendEvents(const Task& task);
  absl::Status SendFile(const Task& task);
  void NoteAck(const RunKey& key, int64_t durable_seq) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteFailure(const Task& task, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  // Constant after construction.
  v1::WorkerService::StubInterface* const stub_;
  const Endpoint endpoint_;
  const Clock* const clock_;
  const Callbacks callbacks_;
  CallSlot slot_;
  // Of the thread.
  std::unique_ptr<EventStream> stream_;  // of the run served last
  int failure_count_ = 0;
  // Guarded.
  Mutex mutex_;
  CondVar changed_;
  std::map<RunKey, Load> loads_ ABSL_GUARDED_BY(mutex_);
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_COURIER_H_
