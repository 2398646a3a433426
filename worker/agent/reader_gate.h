// The step's side of a gate (gate.h): starts the process, hears from it, and ends it, which opens
// the gate, when it has done its work or keeps others waiting.

#ifndef WORKER_AGENT_READER_GATE_H_
#define WORKER_AGENT_READER_GATE_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/file.h"
#include "worker/agent/gate_record.h"
#include "worker/agent/run_directory.h"

namespace assay::agent {

struct ReaderGateOptions {
  std::string program;                   // that has kGateMode
  std::vector<std::string> directories;  // of samples
  bool are_copies = false;               // that are staged into them
  std::string drop_caches_path{};        // as TouchMonitorOptions has it
};

// Not thread-safe.
class ReaderGate {
 public:
  // So long one may be silent that beats ten times a second. Readers wait as long for one that has
  // been stopped.
  static constexpr absl::Duration kSilenceMax = absl::Milliseconds(500);

  // A closed gate. UNAVAILABLE if there can be none here, with the reason. Blocks until the dataset
  // has been listed and its blocks are known, for 60 s at most. `clock` must outlive it.
  static absl::StatusOr<ReaderGate> Close(const ReaderGateOptions& options, const Clock* clock);

  ReaderGate(ReaderGate&&) = default;
  ReaderGate& operator=(ReaderGate&&) = default;
  // Opens it; who waits is let in.
  ~ReaderGate();

  // The process, which may be a descendant of a run's step and is none of the run.
  pid_t pid() const { return pid_; }
  // Readable when it has something to say; -1 once it has not.
  int fd() const { return socket_.get(); }

  // Takes in what it has said, and ends it if that is too long ago. Does not block.
  void Look();

  // The same once it has said one thing more, for which it has kSilenceMax: so that one that ends
  // is not taken for one that has nothing to say.
  void Await();

  // The reader that it has held; none has come yet, or none will.
  const std::optional<GateRecord>& record() const { return record_; }
  // Why it is lost, as a sentence; empty if it is not.
  const std::string& why_lost() const { return why_lost_; }

 private:
  ReaderGate(pid_t pid, UniqueFd process, UniqueFd socket, const Clock* clock)
      : pid_(pid), process_(std::move(process)), socket_(std::move(socket)), clock_(clock) {}
  std::optional<std::string> Receive();
  void Lose(std::string why);
  void Open();

  pid_t pid_;
  UniqueFd process_;
  UniqueFd socket_;
  const Clock* clock_;
  MonoTime heard_at_;
  std::optional<GateRecord> record_;
  std::string why_lost_;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_READER_GATE_H_
