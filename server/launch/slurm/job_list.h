// What squeue says: lines of jobs, lists of hosts, and the comment by which a job is known.

#ifndef SERVER_LAUNCH_SLURM_JOB_LIST_H_
#define SERVER_LAUNCH_SLURM_JOB_LIST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/core/allocation.h"

namespace assay::launch::slurm {

// The comment is last, because it may hold the separator.
inline constexpr char kJobFormat[] = "%A|%T|%r|%V|%S|%e|%N|%j|%k";

// One job. Times are seconds since 1970; 0: Slurm does not say.
struct Job {
  std::string id;      // "4711". No identity: Slurm gives numbers of lost jobs again
  std::string state;   // "PENDING"
  std::string reason;  // "Resources"; for why it waits
  int64_t submit_s = 0;
  int64_t start_s = 0;  // expected, while it waits
  int64_t end_s = 0;
  std::string hosts;  // "n[0-2]"
  std::string name;
  std::string comment;
  bool operator==(const Job&) const = default;
};

// Lines of kJobFormat with times in seconds (SLURM_TIME_FORMAT=%s); what is no such line, like a
// warning, is left out.
std::vector<Job> ParseJobs(absl::string_view text);

// "n[0-1,7],gpu01" as n0, n1, n7, gpu01. INVALID_ARGUMENT for what is no list of hosts, or one of
// more than 100,000.
absl::StatusOr<std::vector<std::string>> ExpandHosts(absl::string_view list);

// A job's number, from what `sbatch --parsable` prints: "4711" or "4711;cluster" on a line of its
// own. nullopt if there is none.
std::optional<std::string> ParseJobId(absl::string_view text);

// The state in which the job `id` of that name ended, from lines "ID|NAME|STATE" of sacct; empty if
// it is not there, or has not ended. Who cancelled it ("CANCELLED by 0") is left out.
std::string ParseEnd(absl::string_view text, absl::string_view id, absl::string_view name);

// "assay-a12"
std::string JobName(core::AllocationId allocation);

// "assay INSTANCE a-12 e-42": with the name, what a job is known by. "-" where the allocation is
// for all.
std::string JobComment(absl::string_view instance, const core::Allocation& allocation);

// The allocation that a comment of this coordinator names; nullopt: the job is not ours.
std::optional<core::AllocationId> ParseComment(absl::string_view instance,
                                               absl::string_view comment);

// What a state means for whoever waits for the job.
enum class JobPhase {
  kWaiting,  // PENDING, CONFIGURING, REQUEUED ...
  kRunning,
  kEnding,     // COMPLETING: the word by which it ended comes next
  kSuspended,  // its clocks would pause
  kEnded,      // COMPLETED, CANCELLED, TIMEOUT, NODE_FAIL, PREEMPTED ...
  kUnknown,    // no word of ours
};
JobPhase PhaseOf(absl::string_view state);

// True if no job that waits for this reason ever starts unless somebody changes it.
bool IsHopeless(absl::string_view reason);

}  // namespace assay::launch::slurm

#endif  // SERVER_LAUNCH_SLURM_JOB_LIST_H_
