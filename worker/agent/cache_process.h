// Work on the node's cache as a process of the agent's (cache_work.h), so that copying a terabyte,
// or a disk that hangs, does not hold the agent's loop, and a run has the node at once.

#ifndef WORKER_AGENT_CACHE_PROCESS_H_
#define WORKER_AGENT_CACHE_PROCESS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

#include "assay/v1/config.pb.h"
#include "assay/v1/resources.pb.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/process.h"
#include "worker/agent/machine.h"

namespace assay::agent {

// At most one process at a time: an order's or a look's. Not thread-safe; Start and everything else
// on one thread, with which the process ends.
class CacheProcess {
 public:
  // `program`: assay-worker.
  CacheProcess(v1::WorkerConfig config, std::string program);
  ~CacheProcess() { Stop(); }
  CacheProcess(const CacheProcess&) = delete;
  CacheProcess& operator=(const CacheProcess&) = delete;

  // Begins or continues the order of that number, a serialized CacheOrder; what goes on is ended.
  // If it cannot begin, TakeEnd says so.
  void Start(int64_t number, const std::string& spec);

  // Has a look at the cache begin, if there is a cache, nothing goes on and it was not looked at
  // within a minute.
  void LookIfDue(MonoTime now);

  // Ends what goes on. What has been copied stays; a process that cannot be killed, since its disk
  // hangs, is left behind after 2 s.
  void Stop();
  // The same, of a look alone.
  void StopLook();

  // Readable once the process has ended; -1: there is none.
  int exit_fd() const { return exit_fd_.get(); }

  // What the process that has ended says, once. One that has left no word is a failure of its
  // order.
  std::optional<CacheSeen> TakeEnd();

  // How far the order is that goes on, where that is news.
  std::optional<CacheSeen> TakeProgress();

 private:
  std::string Directory() const;
  void Begin(int64_t number, const v1::CacheOrder* order);
  absl::Status Spawn(const v1::CacheOrder* order);
  std::optional<v1::CacheReport> ReadReport() const;
  CacheSeen Seen(bool is_done, v1::CacheReport report);

  const v1::WorkerConfig config_;
  const std::string program_;
  int64_t number_ = 0;  // of the order that goes on; 0: a look
  ProcessId process_;
  UniqueFd exit_fd_;  // open while a process goes on
  std::optional<CacheSeen> failed_start_;
  std::optional<MonoTime> looked_at_;
  v1::CacheReport last_;  // that was told
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_CACHE_PROCESS_H_
