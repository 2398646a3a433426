// The pre-flight of this node as a process of the agent's: its checks alone
// (worker/agent/preflight) or its part in that of its gang's fabric (worker/trainer/fabric.h).

#ifndef WORKER_AGENT_CHECK_PROCESS_H_
#define WORKER_AGENT_CHECK_PROCESS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

#include "assay/v1/config.pb.h"
#include "assay/v1/worker_service.pb.h"

#include "common/file.h"
#include "common/process.h"
#include "worker/agent/machine.h"

namespace assay::agent {

// At most one at a time. Not thread-safe; Start and everything else on one thread, with which the
// process ends.
class CheckProcess {
 public:
  // `program`: assay-worker.
  CheckProcess(v1::WorkerConfig config, std::string program);
  ~CheckProcess() { Stop(); }
  CheckProcess(const CheckProcess&) = delete;
  CheckProcess& operator=(const CheckProcess&) = delete;

  // Begins the pre-flight of that number; one that goes on is ended. If it cannot begin, TakeEnd
  // says so.
  //   listener_fd: of this node's rank 0, which a fabric's check inherits; -1: it makes its own.
  void Start(int64_t number, const v1::PreflightSpec& spec, int listener_fd);

  // Ends what goes on, with all its processes; nothing comes of it.
  void Stop();

  // Readable once the process has ended; -1: there is none.
  int exit_fd() const { return exit_fd_.get(); }

  // The result of one that has ended, once: a serialized PreflightReport. A process that has left
  // none is a problem of each check.
  std::optional<CheckEnded> TakeEnd();

 private:
  std::string OutputPath() const;
  std::string FabricSpecPath() const;
  absl::StatusOr<SpawnOptions> NodeCommand() const;
  absl::StatusOr<SpawnOptions> FabricCommand(int listener_fd) const;
  absl::Status Spawn(int listener_fd);
  absl::StatusOr<v1::PreflightReport> ReadReport() const;
  CheckEnded EndWith(const std::string& problem);

  const v1::WorkerConfig config_;
  const std::string program_;
  int64_t number_ = 0;  // 0: none goes on
  v1::PreflightSpec spec_;
  ProcessId process_;
  UniqueFd exit_fd_;
  std::optional<CheckEnded> failed_start_;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_CHECK_PROCESS_H_
