// What a run executes on this node, as far as one kind differs from another: the processes, which
// paths of the dataset are samples, what an exit means, what is kept. All else the step does for
// every kind alike: caches, witness, accounts, limits, stopping (worker/agent/step.h).
//
// A kind is one file of this folder and one row in registry.cc.

#ifndef WORKER_AGENT_WORKLOAD_WORKLOAD_H_
#define WORKER_AGENT_WORKLOAD_WORKLOAD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "assay/v1/config.pb.h"
#include "assay/v1/run_spec.pb.h"

#include "worker/agent/machine.h"
#include "worker/agent/run_directory.h"

namespace assay::agent {

// A file that a process reads.
struct InputFile {
  std::string path;
  std::string content;
};

// A process to start.
struct RankCommand {
  int rank = 0;  // in the whole gang
  std::vector<std::string> argv;
  std::vector<std::string> environment;
  std::string working_directory;
  std::string output_path;            // of stdout and stderr
  std::vector<int> cores;             // to pin it to; empty: wherever this process may run
  int inherited_fd = -1;              // as SpawnOptions::inherited_fd
  std::vector<InputFile> inputs{};    // to write before it starts, for nobody but its account
  bool is_environment_whole = false;  // nothing of this process's environment is added
  bool is_in_sandbox = false;         // argv is that of AsRankIn (worker/agent/account.h)
  // Of an entrant: what of its launcher's it writes, besides what Sees says.
  std::vector<std::string> writable{};
};

// The rank of a launcher: a program of the site that starts processes on all nodes, outside of any
// sandbox, which come in as entrants.
inline constexpr int kLauncherRank = -1;

// A process of a launcher's, as it says who it is.
struct Entrant {
  int rank = 0;                          // in the whole gang
  std::vector<std::string> environment;  // "NAME=value": what its launcher has told it
};

// Whether a variable, "NAME=value", is one by which launchers talk to what they have started.
bool IsOfLauncher(absl::string_view variable);

// What processes see in a sandbox besides the system.
struct Sight {
  std::string image_root;  // what they see in place of the node's system; empty: that
  std::vector<std::string> readable;
  std::vector<std::string> writable;
  std::string temporary_directory;
};

// What the step knows of a start.
struct StartContext {
  std::string enter_program;     // assay-worker, for launchers to start
  std::string entrance_name;     // after its word enter (worker/agent/entrance.h)
  int listener_fd = -1;          // a socket that listens at the gang's rendezvous address; -1: none
  int64_t deadline_unix_ms = 0;  // when the run will be stopped
};

inline constexpr int kSignalBase = 128;  // as a shell reports it

struct RankExit {
  int rank = 0;
  int code = 0;  // or kSignalBase + signal
};

// A file to upload and the name the coordinator shall know it by; unique within the gang.
struct ArtifactFile {
  std::string name;
  std::string path;
};

// Of one run on one node. Immutable.
class Workload {
 public:
  virtual ~Workload() = default;

  // Makes what its processes find here and no command brings along: first of all, once. What lies
  // below RanksPath becomes the ranks' afterwards.
  virtual absl::Status Prepare() const { return absl::OkStatus(); }

  // Whether it can be started here; else what is missing, with its path.
  virtual absl::Status Check(const v1::WorkerConfig& worker) const = 0;

  // What this node starts, in this order, once the caches are clear and the witness is armed.
  // Nothing is written yet.
  virtual std::vector<RankCommand> Commands(const v1::WorkerConfig& worker,
                                            const StartContext& context) const = 0;

  // How many processes come in from a launcher on this node, besides Commands.
  virtual int EntrantCount() const { return 0; }

  // What an entrant is to execute. INVALID_ARGUMENT if it is no rank of this node.
  virtual absl::StatusOr<RankCommand> CommandOf(const Entrant& entrant,
                                                const v1::WorkerConfig& worker,
                                                const StartContext& context) const;

  // The folders of the dataset, or of its staged copy, that hold samples; relative. The first touch
  // of what lies in them is witnessed. Unless a kind says otherwise, those of the dataset format.
  virtual std::vector<std::string> SampleFolders() const;

  // What the end of one of its processes says of the run. The code is one of ExitCode, or
  // kSignalBase + signal, and never kNodeFailed: that is the node's to say. A launcher's end is a
  // consequence (kCommLost): it ends because of what it has started, which another node may know.
  virtual StepExit Read(const RankExit& exit) const = 0;

  // What its processes leave behind, besides the log. Files may be missing.
  virtual std::vector<ArtifactFile> Collected() const = 0;

  // The output of the process that prints the run's log instead of writing it; empty: none does.
  virtual std::string LoggingOutputPath() const { return ""; }

  // The image in which its processes see another system than the node's; null: none.
  virtual const v1::ImageFile* Image() const { return nullptr; }

  // What its processes may see where they are confined; nullopt: they are ours, and are not.
  virtual std::optional<Sight> Sees(const v1::WorkerConfig& worker) const = 0;

  // Between TERM and KILL; nullopt: as the step has it.
  virtual std::optional<absl::Duration> StopGrace() const { return std::nullopt; }
};

// The sample folders of the dataset at `root`, or of its staged copy there. Where the dataset lies
// in archives (common/dataset/shards.h) those, first, and what of the others there is beside them.
std::vector<std::string> SampleFoldersBelow(const Workload& workload, const std::string& root);

// The workload of the run whose files are in `directory`. INVALID_ARGUMENT if this agent has no
// such kind, or the spec makes no sense for one node: ranks, number, dataset path.
absl::StatusOr<std::unique_ptr<const Workload>> MakeWorkload(const v1::RunSpec& spec,
                                                             const RunDirectory& directory);

// "killed by signal 11 (Segmentation fault)"; `code` is at least kSignalBase.
std::string DescribeSignal(int code);

}  // namespace assay::agent

#endif  // WORKER_AGENT_WORKLOAD_WORKLOAD_H_
