// The directory of one run on this node: <data>/runs/r-901-g3/. Everything that the agent and the
// step must know after a crash is a file in it.
//
//   spec.textproto     what to do, as the coordinator sent it        written by the agent
//   worker.textproto   the part of the configuration the step needs  agent
//   preflight.json     what the node has passed for the run's set    agent
//   offsets.jsonl      the node's clock beside the coordinator's     agent
//   stop               exists once the run is to be stopped          agent
//   leave              exists once the ranks may start, if the spec  agent
//                      says that they wait for that
//   lock               held (flock) by the step as long as it lives  step
//   step.json          the step has begun; never begins again        step
//   trainers.json      the trainers' process ids                     step
//   witness/           what the step tells of the run:
//     touch.json       its first touch of the dataset                step
//     observed.json    the first touch by nobody knows whom          step
//     pauses.json      when ranks were stopped by a signal           step
//     ranks.json       what was done to ranks                        step
//     clocks.json      what was done to the node's clocks            step
//     caches.json      how the caches were reset, and what proves it step
//     memory.json      what of the data was in memory                step
//     telemetry.bin    what the node did meanwhile                   step
//     foreign.jsonl    which processes of others used most of it     step
//     figures          what the node does now, of the last second   step
//     arrivals.jsonl   when records of a program's log came          step
//     stopping         exists once the step ends its ranks           step
//     ready            exists once the step waits for leave          step
//     exit.json        how it ended                                  step; agent if the step died
//   result_<n>.txt     the MLLOG file                                step, then rank 0
//   trainer_<rank>.out stdout and stderr of one rank                 trainers
//   agent/spool        events, until the run is forgotten            agent
//
//   source.tar         of a program that the submission brings      agent
//   source.error       why it cannot be had                         agent
//   code/              the same unpacked, for ranks to read         step
//   stored_engines.textproto  what GPUs of the run before computed with  step
//   ranks/             where ranks work, leave checkpoints and
//                      engines.textproto                             trainers
//
// JSON files are written atomically and durably. Where ranks have an account of their own they can
// pass through the directory, but not list or change it; theirs are ranks/, and the content of the
// log, of progress.jsonl and of the copies of the spec. So they can forge no record of the step. A
// step that has given root up owns witness/, and its names may lead anywhere: no link is followed.

#ifndef WORKER_AGENT_RUN_DIRECTORY_H_
#define WORKER_AGENT_RUN_DIRECTORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/process.h"
#include "worker/agent/gate_record.h"
#include "worker/agent/machine.h"
#include "worker/agent/stamp.h"

namespace assay::agent {

// A way past the witness that was open: a code, of which docs/reviewer.md has a table, and why, as
// a sentence.
struct WitnessHole {
  std::string code;
  std::string why;
  bool operator==(const WitnessHole&) const = default;
};

// A first touch of the dataset.
// Bytes that were read before a touch. nullopt of what the step may not know, or the node has not.
struct RunReads {
  std::optional<int64_t> storage;  // by the run's processes, from storage: read_bytes of their io
  std::optional<int64_t> asked;    // by them, by read(2) and its like: rchar
  int64_t mapped = 0;              // of the files that they map, each once, which explain as many
  std::optional<int64_t> servers;  // sent to this node by servers, by NFS's and Lustre's clients
  bool operator==(const RunReads&) const = default;
};

struct Touch {
  std::string path;            // the file
  std::string mechanism;       // fanotify | inotify
  std::string access;          // open | read
  bool is_attributed = false;  // by a process of the run; else somebody's
  pid_t pid = 0;               // 0: the mechanism cannot tell
  std::string process;         // name of that process; empty if not known
  Stamp stamp;
  std::string watched{};             // file system | folders
  std::optional<int> rank{};         // whose process it was; none: not known to be a rank's
  std::optional<GateRecord> gate{};  // that has held it; none: nothing did
  // What was read of the data before, past all that is watched and by nobody who is known: it
  // speaks against the run. Kept apart from the rest, as a fault.
  std::string read_past{};
  std::vector<WitnessHole> holes{};  // what could have been before it, unseen
  // By how much the stamp may be off on this node's clock: for so long at most its event had waited
  // to be read, or the reader was held after it. Not known of those that agents of before wrote.
  std::optional<int64_t> error_us{};
  std::optional<RunReads> run_reads{};
  bool operator==(const Touch&) const = default;
};

// A time during which a rank was stopped by a signal.
struct Pause {
  int rank = 0;
  Stamp begin;
  std::optional<Stamp> end;  // none: it was never continued
  bool operator==(const Pause&) const = default;
};

// What the node saw that a reviewer has to know: a rule (NodeFinding of common/rules/check.h) and a
// sentence.
struct NodeFault {
  std::string rule;
  std::string found;
  bool operator==(const NodeFault&) const = default;
};

// Of one kind, more are not kept.
inline constexpr size_t kNodeFaultsMax = 100;

// Processes of one boot of this node.
struct ProcessRecord {
  std::string boot_id;
  std::vector<ProcessId> processes;
};

class RunDirectory {
 public:
  explicit RunDirectory(std::string path) : path_(std::move(path)) {}

  // The directory of `key` below `data_directory`. INVALID_ARGUMENT if the run's name is not
  // runs/<id> with letters, digits and hyphens, or the generation is not positive.
  static absl::StatusOr<RunDirectory> ForRun(absl::string_view data_directory, const RunKey& key);
  // The run whose directory has this name; nullopt if it is no such name.
  static std::optional<RunKey> ParseName(absl::string_view name);

  const std::string& path() const { return path_; }
  std::string Path(absl::string_view file) const;
  std::string SpecPath() const { return Path("spec.textproto"); }
  std::string WorkerPath() const { return Path("worker.textproto"); }
  std::string StopPath() const { return Path("stop"); }
  std::string LeavePath() const { return Path("leave"); }
  std::string LockPath() const { return Path("lock"); }
  std::string StepPath() const { return Path("step.json"); }
  std::string TrainersPath() const { return Path("trainers.json"); }
  std::string WitnessDirectory() const { return Path("witness"); }
  std::string TouchPath() const { return Path("witness/touch.json"); }
  std::string ObservedTouchPath() const { return Path("witness/observed.json"); }
  std::string PausesPath() const { return Path("witness/pauses.json"); }
  std::string TelemetryPath() const { return Path("witness/telemetry.bin"); }
  std::string ForeignPath() const { return Path("witness/foreign.jsonl"); }
  std::string FiguresPath() const { return Path("witness/figures"); }
  std::string StallsPath() const { return Path("witness/stalls.json"); }
  std::string RanksWatchedPath() const { return Path("witness/ranks.json"); }
  std::string ClocksPath() const { return Path("witness/clocks.json"); }
  std::string CachesPath() const { return Path("witness/caches.json"); }
  std::string MemoryPath() const { return Path("witness/memory.json"); }
  std::string ArrivalsPath() const { return Path("witness/arrivals.jsonl"); }
  std::string StoppingPath() const { return Path("witness/stopping"); }
  std::string ReadyPath() const { return Path("witness/ready"); }
  std::string ExitPath() const { return Path("witness/exit.json"); }
  std::string StepLogPath() const { return Path("step.log"); }
  std::string SystemPath() const { return Path("system_description.json"); }
  std::string ClockSamplesPath() const { return Path("offsets.jsonl"); }
  std::string PreflightPath() const { return Path("preflight.json"); }
  std::string ProgressPath() const { return Path("progress.jsonl"); }
  std::string SourcePath() const { return Path("source.tar"); }
  std::string SourceErrorPath() const { return Path("source.error"); }
  std::string CodePath() const { return Path("code"); }
  std::string MaterialsPath() const { return Path("materials.json"); }
  std::string GroupPath() const { return Path("group"); }  // folders, one a line
  std::string RanksPath() const { return Path("ranks"); }
  std::string SpoolDirectory() const { return Path("agent"); }
  std::string SpoolPath() const { return Path("agent/spool"); }
  std::string ResultPath(int run_number) const;
  // The directory into which this node stages the dataset of the run, below that of all runs.
  std::string StagePath(absl::string_view stage_directory) const;

  // NOT_FOUND if the file is absent; DATA_LOSS if it does not parse.
  absl::StatusOr<StepExit> ReadExit() const;
  absl::Status WriteExit(const StepExit& exit, const Stamp& stamp) const;
  // `path` is TouchPath or ObservedTouchPath; a touch is written to the one that it belongs to.
  absl::StatusOr<Touch> ReadTouch(const std::string& path) const;
  absl::Status WriteTouch(const Touch& touch) const;
  absl::StatusOr<std::vector<Pause>> ReadPauses() const;
  absl::Status WritePauses(const std::vector<Pause>& pauses) const;
  // `path` is ClocksPath, MemoryPath, RanksWatchedPath or StallsPath.
  absl::StatusOr<std::vector<NodeFault>> ReadFaults(const std::string& path) const;
  absl::Status WriteFaults(const std::string& path, const std::vector<NodeFault>& faults) const;
  absl::StatusOr<ProcessRecord> ReadProcesses(const std::string& path) const;
  absl::Status WriteProcesses(const std::string& path,
                              const std::vector<ProcessId>& processes) const;

 private:
  std::string path_;
};

// What a touch event and touch.json hold, as JSON text.
std::string TouchJson(const Touch& touch);

}  // namespace assay::agent

#endif  // WORKER_AGENT_RUN_DIRECTORY_H_
