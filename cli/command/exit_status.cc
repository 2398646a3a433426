#include "cli/command/exit_status.h"

namespace assay::cli {
namespace {

constexpr ExitStatusRow kTable[] = {
    {ExitStatus::kDone, "done"},
    {ExitStatus::kFailed,
     "the thing asked about failed (a run did not converge, a check failed, our own bug)"},
    {ExitStatus::kUsage, "usage: the command line or a file that it names is wrong"},
    {ExitStatus::kRuleViolation, "a rule of the round is violated"},
    {ExitStatus::kNotAllowed, "not logged in, or the role may not do this"},
    {ExitStatus::kNotFound, "no such entry, run, node, dataset, file or rule"},
    {ExitStatus::kUnreachable, "no coordinator answers"},
    {ExitStatus::kTimedOut, "--timeout has passed while waiting"},
    {ExitStatus::kConflict, "the present state does not allow it, or has changed meanwhile"},
    {ExitStatus::kStillRunning, "still running (status --exit-code)"},
    {ExitStatus::kDifferent, "differences were found"},
    {ExitStatus::kInterrupted, "interrupted with Ctrl-C; what was submitted goes on"},
};

}  // namespace

std::span<const ExitStatusRow> ExitStatusTable() {
  return kTable;
}

ExitStatus ExitStatusFor(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitStatus::kDone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return ExitStatus::kUsage;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return ExitStatus::kNotAllowed;
    case absl::StatusCode::kNotFound:
      return ExitStatus::kNotFound;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
      return ExitStatus::kUnreachable;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted:
      return ExitStatus::kConflict;
    case absl::StatusCode::kCancelled:
      return ExitStatus::kInterrupted;
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kUnknown:
    default:
      return ExitStatus::kFailed;
  }
}

}  // namespace assay::cli
