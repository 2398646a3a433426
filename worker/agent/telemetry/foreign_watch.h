// Looks now and then which processes of others use most of the node's processors, and writes them
// down (common/telemetry/foreign.h).

#ifndef WORKER_AGENT_TELEMETRY_FOREIGN_WATCH_H_
#define WORKER_AGENT_TELEMETRY_FOREIGN_WATCH_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/file.h"
#include "common/telemetry/foreign.h"

namespace assay::agent {

// Not thread-safe.
class ForeignWatch {
 public:
  struct Options {
    std::string proc = "/proc";
    int64_t ticks_per_second = 100;   // of the kernel's counts of processor time
    pid_t own = 0;                    // it and what descends from it are of the run
    std::set<pid_t> left_out{};       // of nobody's run: the agent
    std::function<int64_t()> cpu_ns;  // what this thread has used
  };

  // Makes the file at `path` anew, for its owner alone. errno's code if it cannot.
  static absl::StatusOr<std::unique_ptr<ForeignWatch>> Create(const std::string& path,
                                                              Options options);

  // At `node_ns`, by which spans are stamped. Does something every ten seconds, and if looking
  // costs over half a thousandth of a core, less often; always if it `is_last`. The first time it
  // only sees who is there. Whoever uses less than a hundredth of a processor is not written down,
  // and whoever comes and goes in between is not seen. The errors of writing.
  absl::Status Look(int64_t node_ns, bool is_last = false);

 private:
  // A process as /proc/PID/stat tells of it.
  struct Process {
    pid_t parent = 0;
    std::string name;
    int64_t start_ticks = 0;
    int64_t cpu_ticks = 0;
  };
  using Processes = std::map<pid_t, Process>;

  ForeignWatch(UniqueFd file, Options options)
      : file_(std::move(file)), options_(std::move(options)) {}

  Processes Read() const;
  bool IsForeign(pid_t pid, const Processes& now) const;
  std::vector<telemetry::ForeignProcess> Largest(const Processes& now, int64_t passed_ns) const;

  const UniqueFd file_;
  const Options options_;
  bool has_begun_ = false;
  int64_t looked_ns_ = 0;
  int64_t due_ns_ = 0;
  Processes last_;
};

// The agent that has started this process, and what has started that, as long as it is the same
// program. Needs the right to know what those are.
std::set<pid_t> OwnAgent();

}  // namespace assay::agent

#endif  // WORKER_AGENT_TELEMETRY_FOREIGN_WATCH_H_
