// Where processes that a launcher (srun, mpirun) has started on this node come into the run: each
// is an `assay-worker enter`, which hands its place over to a rank that the step starts as its own
// child, waits, and ends as the rank ends (ADR 0177).

#ifndef WORKER_AGENT_ENTRANCE_H_
#define WORKER_AGENT_ENTRANCE_H_

#include <sys/types.h>

#include <list>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "common/file.h"
#include "worker/agent/workload/workload.h"

namespace assay::agent {

// The step's side: a Unix socket without a file, so that nobody has to know this node's folders.
// Only processes of one account are heard. Not thread-safe.
class Entrance {
 public:
  // `name` is EntranceName of the run. ALREADY_EXISTS if another process holds it.
  static absl::StatusOr<Entrance> Open(const std::string& name, int node_rank, uid_t account);

  // Each is readable when somebody has come, has said who he is, or has gone.
  std::vector<int> Fds() const;

  // Who has said since the last call who he is. Whoever says what cannot be is refused.
  std::vector<Entrant> TakeEntrants();

  // True if one has gone that was neither answered nor refused.
  bool HasLostOne() const { return has_lost_one_; }

  // The rank has ended: so does the process in whose place it was.
  void Answer(const RankExit& exit);
  void Refuse(int rank, absl::string_view why);

 private:
  struct Caller {
    UniqueFd fd;
    std::optional<int> rank;  // once it has said so
  };

  explicit Entrance(UniqueFd listener, uid_t account)
      : listener_(std::move(listener)), account_(account) {}
  void Accept();
  void Reply(int rank, const std::string& text);

  UniqueFd listener_;
  uid_t account_;
  std::list<Caller> callers_;
  bool has_lost_one_ = false;
};

// The word after `assay-worker enter` by which a run's steps are found on their nodes.
std::string EntranceName(const v1::RunSpec& spec);

// The rank of this process as its launcher has told it: OMPI_COMM_WORLD_RANK, PMIX_RANK or
// SLURM_PROCID, in this order, since a process of mpirun below srun has the last one of its daemon.
// FAILED_PRECONDITION if there is none.
absl::StatusOr<int> RankOfThisProcess();

inline constexpr char kEnterMode[] = "enter";

// `assay-worker enter NAME RANKS_PER_NODE`: takes part in the run and returns the code to end with:
// the rank's, 128 + n if a signal ended it; 1 if it is refused, or finds no step within `patience`,
// which standard error says.
int RunEnter(const std::vector<std::string>& arguments, absl::Duration patience);

}  // namespace assay::agent

#endif  // WORKER_AGENT_ENTRANCE_H_
