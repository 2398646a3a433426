// Decide: what a command comes to, as a pure function of the state. Nothing is changed here.

#ifndef SERVER_CORE_DECIDE_H_
#define SERVER_CORE_DECIDE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/core/command.h"
#include "server/core/event.h"
#include "server/core/types.h"

namespace assay::core {

// Bounds on what callers may ask for; each far above what a round needs.
inline constexpr int32_t kNodeCountMax = 4096;
inline constexpr int32_t kRanksPerNodeMax = 256;
inline constexpr int32_t kRunCountMax = 1000;
inline constexpr int32_t kReplacementCountMax = 100;
inline constexpr int32_t kMinutesPerRunMax = 30 * 24 * 60;
inline constexpr size_t kHyperparameterCountMax = 1000;
inline constexpr size_t kOpenRunCountMax = 1'000'000;  // about 1 GB of memory
inline constexpr size_t kAppendCountMax = 1000;
inline constexpr size_t kTextBytesMax = 4096;  // of a name or a reason
// Of one run. Each node leaves a file for each thing that it witnesses, each rank what it printed.
constexpr size_t ArtifactCountMax(size_t node_count) {
  return 1000 + 64 * node_count;
}

inline constexpr int64_t kTimeUsMax = 253'402'300'799'999'999;  // the end of the year 9999

struct Context {
  const State& state;
  const std::string& principal;
  const Standing& standing;
  int64_t now_us;
  const LauncherStarted& launcher;  // as it has said last; without a name: it has not
};

// What shall happen: events to apply in order, log rows to store, and the answer. The replies of
// Synchronize, CreateSubmission and CancelSubmission name only what they are about: Core fills in
// the rest when the whole batch is applied.
struct Decision {
  std::vector<Event> events;
  std::vector<RunEvent> run_events;  // of AppendRunEvents; only what is new
  Reply reply;
};

// An error is the reply and changes nothing; codes are in command.h.
// The submission, which was loaded for its command if there is one (Core::Missing). NOT_FOUND;
// UNAVAILABLE if that failed.
absl::StatusOr<const Submission*> FindSubmission(const State& state, SubmissionId id);

absl::StatusOr<Decision> Decide(const Context& context, const CreateSubmission& command);
absl::StatusOr<Decision> Decide(const Context& context, const CancelSubmission& command);
absl::StatusOr<Decision> Decide(const Context& context, const NoteSubmission& command);
absl::StatusOr<Decision> Decide(const Context& context, const PublishSubmission& command);
absl::StatusOr<Decision> Decide(const Context& context, const WithdrawSubmission& command);
absl::StatusOr<Decision> Decide(const Context& context, const PruneInstances& command);
absl::StatusOr<Decision> Decide(const Context& context, const ImportSubmission& command);
absl::StatusOr<Decision> Decide(const Context& context, const Synchronize& command);
absl::StatusOr<Decision> Decide(const Context& context, const AppendRunEvents& command);
absl::StatusOr<Decision> Decide(const Context& context, const RecordArtifact& command);
// Checks as for RecordArtifact; changes nothing.
absl::StatusOr<Decision> Decide(const Context& context, const AuthorizeUpload& command);
absl::StatusOr<Decision> Decide(const Context& context, const DrainWorker& command);
absl::StatusOr<Decision> Decide(const Context& context, const ResumeWorker& command);
absl::StatusOr<Decision> Decide(const Context& context, const LabelWorker& command);
absl::StatusOr<Decision> Decide(const Context& context, const RevokeWorker& command);
absl::StatusOr<Decision> Decide(const Context& context, const CreateToken& command);
absl::StatusOr<Decision> Decide(const Context& context, const RevokeToken& command);
absl::StatusOr<Decision> Decide(const Context& context, const RedeemEnrolment& command);
absl::StatusOr<Decision> Decide(const Context& context, const AddDataset& command);
absl::StatusOr<Decision> Decide(const Context& context, const RemoveDataset& command);
absl::StatusOr<Decision> Decide(const Context& context, const SaveView& command);
absl::StatusOr<Decision> Decide(const Context& context, const RemoveView& command);
absl::StatusOr<Decision> Decide(const Context& context, const OrderCaches& command);
absl::StatusOr<Decision> Decide(const Context& context, const RecordBackup& command);
absl::StatusOr<Decision> Decide(const Context& context, const PruneArtifacts& command);
absl::StatusOr<Decision> Decide(const Context& context, const RecordRefusal& command);
absl::StatusOr<Decision> Decide(const Context& context, const LogChecked& command);
absl::StatusOr<Decision> Decide(const Context& context, const SetScored& command);
absl::StatusOr<Decision> Decide(const Context& context, const RequestAllocation& command);
absl::StatusOr<Decision> Decide(const Context& context, const ReleaseAllocation& command);
absl::StatusOr<Decision> Decide(const Context& context, const JoinAllocation& command);
absl::StatusOr<Decision> Decide(const Context& context, const EnrolNode& command);
absl::StatusOr<Decision> Decide(const Context& context, const LauncherStarted& command);
absl::StatusOr<Decision> Decide(const Context& context, const LaunchReported& command);
absl::StatusOr<Decision> Decide(const Context& context, const Tick& command);

// OK if what a spec chooses among few (division, backend, status, staging) is one of them, or not
// chosen yet. INVALID_ARGUMENT names the field, what it holds and the choices.
absl::Status CheckChoices(const SubmissionSpec& spec);

// Ends a submission: its runs that have not ended are CANCELLED, then it is closed.
std::vector<Event> Close(const State& state, const Submission& submission, SubmissionState target,
                         const std::string& reason);

}  // namespace assay::core

#endif  // SERVER_CORE_DECIDE_H_
