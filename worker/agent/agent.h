// The agent: one loop that turns what happens on the node and what the coordinator says into inputs
// of the machine, and does what the machine decides.
//
// Threads: the loop owns everything but the clients, each of which has a thread of its own and
// posts into the inbox or leaves a file. All that must survive a crash is in files
// (run_directory.h): a new agent over the same data directory carries on.

#ifndef WORKER_AGENT_AGENT_H_
#define WORKER_AGENT_AGENT_H_

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "assay/v1/config.pb.h"
#include "assay/v1/worker_service.grpc.pb.h"

#include "common/clock.h"
#include "common/rpc/channel.h"
#include "worker/agent/attached_run.h"
#include "worker/agent/cache_process.h"
#include "worker/agent/check_process.h"
#include "worker/agent/courier.h"
#include "worker/agent/directory_watch.h"
#include "worker/agent/inbox.h"
#include "worker/agent/machine.h"
#include "worker/agent/source_fetcher.h"
#include "worker/agent/sync_client.h"

namespace assay::agent {

struct AgentOptions {
  v1::WorkerConfig config;   // with its defaults
  std::string step_program;  // started as `step_program step DIRECTORY`
  std::string incarnation;   // new at each start
  std::string version;
  v1::Capabilities capabilities;
  int rendezvous_listener_fd = -1;  // at capabilities' address, for rank 0; -1: it makes its own
  std::string system_description_json;
  absl::Duration poll_timeout = absl::Seconds(20);  // of Synchronize; the most that it may be
  absl::Duration tick = absl::Seconds(5);           // how often what may be lost is asked for again
  absl::Duration leave_timeout = absl::Seconds(3);  // for the last Synchronize
  // Told to leave while a step executes, the agent looks for so long whether that is told to stop,
  // too: who ends a whole job signals its processes one after the other. A second signal counts
  // only after this.
  absl::Duration settle_time = absl::Seconds(1);
  // From the signal, for a step that is being stopped to end, and for its end to be delivered.
  absl::Duration deliver_timeout = absl::Seconds(20);
  absl::Time renew_at = absl::InfiniteFuture();  // when its certificate is due for renewal
  // Where a leaving agent keeps runs that have ended until their end is delivered: on a disk that
  // is there when the node is not. Empty: it does not.
  std::string salvage_directory;
  bool ends_with_lease = false;  // when the coordinator says that its allocation has ended
};

enum class AgentEnd {
  kStopped,             // as it was told
  kRenewalIsDue,        // a new agent with a renewed certificate is to go on
  kCertificateRefused,  // the coordinator does not take the certificate any more: it was revoked
};

// Not thread-safe.
class Agent {
 public:
  // `stub` and `clock` must outlive the agent.
  Agent(AgentOptions options, Endpoint endpoint, v1::WorkerService::StubInterface* stub,
        const Clock* clock);

  // Works until `stop_fd` (a signalfd or eventfd, which is read) becomes readable, then tells the
  // coordinator that it leaves and returns; or until its certificate is to be renewed, which the
  // coordinator need not know, or is refused (UNAUTHENTICATED). Steps run on. But a leaving agent
  // first delivers the end of a step that has ended or is told to stop as well (ADR 0166), within
  // deliver_timeout and until `stop_fd` becomes readable again; what is left is in the spool.
  // Errors: the data directory cannot be used.
  absl::StatusOr<AgentEnd> Run(int stop_fd);

 private:
  absl::Status Recover();
  void NoteFailure(int64_t call, const absl::Status& status);
  void Loop(int stop_fd);
  void NoteStop(int stop_fd);
  void SettleIfDue();
  void SalvageEnded();
  bool IsSalvaged() const;
  bool IsOver() const;
  void WaitForSomething(int stop_fd);
  absl::Duration TimeLeft() const;
  void Feed(Input input);
  void Execute(const Action& action);
  void Do(const StartStep& action);
  void Do(const StopStep& action);
  void Do(const GiveLeave& action);
  void Do(const StartCheck& action);
  void Do(const StopCheck& action);
  void Do(const StartCaching& action);
  void Do(const StopCaching& action);
  void Do(const Synchronize& action);
  void TellFigures(const RunKey& key, v1::SynchronizeRequest* request);
  void Do(const SendEvents& action);
  void Do(const UploadArtifacts& action);
  void Do(const ForgetRun& action);
  absl::Status Prepare(const StartStep& action);
  void Attach(const RunDirectory& directory, const RunKey& key);
  void Observe(const RunKey& key);
  void ObserveAll();
  void KeepClockSamples();
  void ObserveChanges();
  void FollowCache();
  void Drain();
  AttachedRun* FindRun(const RunKey& key);
  std::string FencesPath() const;

  const AgentOptions options_;
  v1::WorkerService::StubInterface* const stub_;
  const Endpoint endpoint_;
  const Clock* const clock_;
  Inbox inbox_;
  std::optional<DirectoryWatch> watch_;
  MachineState state_;
  std::map<RunKey, AttachedRun> runs_;
  CheckProcess check_;
  CacheProcess cache_;
  std::deque<Input> inputs_;  // fed while another is handled
  bool is_feeding_ = false;
  std::atomic<bool> is_refused_ = false;  // the coordinator does not know us any more
  std::atomic<bool> is_lease_over_ = false;
  // What the coordinator was told last, when, and by which call at first; calls that have ended.
  Status told_;
  MonoTime told_at_;
  int64_t told_call_ = 0;
  int64_t answered_call_ = 0;
  int64_t failed_call_ = 0;
  // Leaving.
  std::optional<MonoTime> leave_began_;
  bool is_settled_ = false;          // it is known whether steps that execute go on
  bool is_hurried_ = false;          // by a second signal
  std::map<RunKey, bool> salvaged_;  // runs that have ended: whether it worked
  MonoTime next_tick_;
  std::unique_ptr<SyncClient> sync_;
  std::unique_ptr<Courier> courier_;
  std::unique_ptr<SourceFetcher> fetcher_;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_AGENT_H_
