#include "server/core/transitions.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace assay::core {
namespace {

template <typename State>
struct Move {
  State source;
  State target;
};

constexpr Move<SubmissionState> kSubmissionMoves[] = {
    {SubmissionState::kOpen, SubmissionState::kRunning},
    {SubmissionState::kOpen, SubmissionState::kInvalid},
    {SubmissionState::kOpen, SubmissionState::kCancelled},
    {SubmissionState::kRunning, SubmissionState::kChecking},
    {SubmissionState::kRunning, SubmissionState::kInvalid},
    {SubmissionState::kRunning, SubmissionState::kCancelled},
    {SubmissionState::kChecking, SubmissionState::kValid},
    {SubmissionState::kChecking, SubmissionState::kInvalid},
    {SubmissionState::kChecking, SubmissionState::kCancelled},
};

constexpr Move<RunState> kRunMoves[] = {
    {RunState::kQueued, RunState::kAssigned},     {RunState::kQueued, RunState::kCancelled},
    {RunState::kAssigned, RunState::kRunning},    {RunState::kAssigned, RunState::kFailed},
    {RunState::kAssigned, RunState::kCancelled},  {RunState::kRunning, RunState::kUploading},
    {RunState::kRunning, RunState::kFailed},      {RunState::kRunning, RunState::kCancelled},
    {RunState::kUploading, RunState::kSucceeded}, {RunState::kUploading, RunState::kFailed},
    {RunState::kUploading, RunState::kCancelled},
};

// A worker that signed off or was lost may come back; one that is away may still be drained, and
// the certificates of any may be revoked.
constexpr Move<WorkerState> kWorkerMoves[] = {
    {WorkerState::kAlive, WorkerState::kSuspect}, {WorkerState::kAlive, WorkerState::kDraining},
    {WorkerState::kAlive, WorkerState::kGone},    {WorkerState::kSuspect, WorkerState::kAlive},
    {WorkerState::kSuspect, WorkerState::kLost},  {WorkerState::kSuspect, WorkerState::kDraining},
    {WorkerState::kSuspect, WorkerState::kGone},  {WorkerState::kLost, WorkerState::kAlive},
    {WorkerState::kLost, WorkerState::kDraining}, {WorkerState::kDraining, WorkerState::kAlive},
    {WorkerState::kDraining, WorkerState::kLost}, {WorkerState::kDraining, WorkerState::kGone},
    {WorkerState::kGone, WorkerState::kAlive},    {WorkerState::kGone, WorkerState::kDraining},
    {WorkerState::kLost, WorkerState::kGone},
};

// What was not granted may be given up, and any may be lost at any time.
constexpr Move<AllocationState> kAllocationMoves[] = {
    {AllocationState::kRequested, AllocationState::kGranted},
    {AllocationState::kRequested, AllocationState::kReleasing},
    {AllocationState::kRequested, AllocationState::kEnded},
    {AllocationState::kGranted, AllocationState::kActive},
    {AllocationState::kGranted, AllocationState::kReleasing},
    {AllocationState::kGranted, AllocationState::kEnded},
    {AllocationState::kActive, AllocationState::kReleasing},
    {AllocationState::kActive, AllocationState::kEnded},
    {AllocationState::kReleasing, AllocationState::kEnded},
};

template <typename State, size_t kCount>
absl::Status Check(const Move<State> (&moves)[kCount], State source, State target) {
  const bool is_legal = std::any_of(
      std::begin(moves), std::end(moves),
      [&](const Move<State>& move) { return move.source == source && move.target == target; });
  if (is_legal) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("no move leads from ", ToString(source), " to ", ToString(target)));
}

}  // namespace

absl::Status CheckMove(SubmissionState source, SubmissionState target) {
  return Check(kSubmissionMoves, source, target);
}

absl::Status CheckMove(RunState source, RunState target) {
  return Check(kRunMoves, source, target);
}

absl::Status CheckMove(WorkerState source, WorkerState target) {
  if (source == target) return absl::OkStatus();
  return Check(kWorkerMoves, source, target);
}

absl::Status CheckMove(AllocationState source, AllocationState target) {
  return Check(kAllocationMoves, source, target);
}

}  // namespace assay::core
