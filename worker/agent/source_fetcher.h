// Brings the sources of programs from the coordinator into the directories of their runs, on a
// thread of its own, and tries again until they are there or it is certain that they will not be.

#ifndef WORKER_AGENT_SOURCE_FETCHER_H_
#define WORKER_AGENT_SOURCE_FETCHER_H_

#include <map>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

#include "assay/v1/worker_service.grpc.pb.h"
#include "assay/v1/workload.pb.h"

#include "common/clock.h"
#include "common/mutex.h"
#include "common/rpc/channel.h"
#include "worker/agent/call_slot.h"
#include "worker/agent/machine.h"
#include "worker/agent/run_directory.h"

namespace assay::agent {

// Thread-safe. What it has done is seen in the run's directory: SourcePath, with the digest that
// was asked for, or SourceErrorPath with a sentence.
class SourceFetcher {
 public:
  // `stub` and `clock` must outlive it.
  SourceFetcher(v1::WorkerService::StubInterface* stub, Endpoint endpoint, const Clock* clock);
  ~SourceFetcher();  // ends what is under way

  // Repeats are harmless.
  void Fetch(const RunKey& key, const RunDirectory& directory, const v1::SourceArchive& source)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // It is not wanted any more.
  void Drop(const RunKey& key) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Order {
    RunDirectory directory;
    v1::SourceArchive source;
  };

  void Loop();
  absl::Status Download(const RunKey& key, const Order& order);
  // Waits before the next try; false if there shall be none.
  bool WaitAfter(int failure_count) ABSL_LOCKS_EXCLUDED(mutex_);

  v1::WorkerService::StubInterface* const stub_;
  const Endpoint endpoint_;
  const Clock* const clock_;
  CallSlot slot_;
  Mutex mutex_;
  CondVar changed_;
  std::map<RunKey, Order> orders_ ABSL_GUARDED_BY(mutex_);
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_SOURCE_FETCHER_H_
