#include "server/core/types.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"

#include "common/exit_code.h"

namespace assay::core {

const std::string& BackendOf(const Workload& workload) {
  static const std::string* const kAny = new std::string;
  const auto* trainer = std::get_if<TrainerWorkload>(&workload);
  return trainer == nullptr ? *kAny : trainer->backend;
}

const SourceArchive* SourceOf(const Workload& workload) {
  const auto* command = std::get_if<CommandWorkload>(&workload);
  return command == nullptr || !command->source.has_value() ? nullptr : &*command->source;
}

ArtifactRef AsArtifact(const SourceArchive& source) {
  return {.file_name = std::string(kSourceFileName),
          .sha256 = source.sha256,
          .size_bytes = source.size_bytes};
}

bool IsThroughput(const SubmissionSpec& spec) {
  return spec.metric == kThroughput;
}

int64_t NodesAtOnce(const SubmissionSpec& spec) {
  return IsThroughput(spec) ? int64_t{spec.node_count} * spec.run_count : spec.node_count;
}

int64_t EarlierStart(int64_t at_us, const RunFacts& facts) {
  constexpr int64_t kMsMax = 253'402'300'800'000;  // the year 10000
  const int64_t start_ms = facts.run_start_ms.value_or(0);
  if (start_ms <= 0 || start_ms >= kMsMax) return at_us;
  return at_us == 0 ? start_ms * 1000 : std::min(at_us, start_ms * 1000);
}

std::string ResultFileName(const Run& run) {
  return absl::StrCat(kResultPrefix, run.number, ".txt");
}

std::vector<std::string> NodeNames(const Run& run) {
  if (!run.node_names.empty()) return run.node_names;
  std::vector<std::string> names;
  for (const RunNode& node : run.nodes)
    names.push_back(node.worker);
  return names;
}

const std::string& NodeName(const Worker& worker) {
  const auto label = worker.description.labels.find(std::string(kNodeLabel));
  const bool is_named = label != worker.description.labels.end() && !label->second.empty();
  return is_named ? label->second : worker.name;
}

bool IsSettled(const RunNode& node) {
  return node.phase == NodePhase::kFinished || node.is_lost || node.is_released;
}

bool IsSettled(const Run& run) {
  return IsSealed(run, "");
}

bool IsSealed(const Run& run, const std::string& worker) {
  return std::all_of(run.nodes.begin(), run.nodes.end(), [&worker](const RunNode& node) {
    return IsSettled(node) || (!worker.empty() && node.worker != worker);
  });
}

absl::Status CheckCertificate(const std::string& worker, int64_t presented, int64_t valid_from) {
  if (presented >= valid_from) return absl::OkStatus();
  return absl::UnauthenticatedError(absl::StrCat(
      "the certificate of worker ", worker,
      " was revoked: enrol the node again with a new token (assay admin enrol ", worker, ")"));
}

bool IsConsequence(int32_t exit_code) {
  return exit_code == static_cast<int>(ExitCode::kCommLost) ||
         exit_code == static_cast<int>(ExitCode::kTerminated);
}

bool IsTrainerFailure(int32_t exit_code) {
  const bool is_signal = exit_code > static_cast<int>(ExitCode::kUnknownSignal);
  return exit_code != static_cast<int>(ExitCode::kOk) && !IsConsequence(exit_code) && !is_signal &&
         exit_code != static_cast<int>(ExitCode::kNodeFailed);
}

bool IsInfrastructureFailure(const Run& run, const Workload& workload) {
  if (std::holds_alternative<CommandWorkload>(workload))
    return run.is_replaceable &&
           std::any_of(run.nodes.begin(), run.nodes.end(), [](const RunNode& node) {
             return node.is_lost || node.exit_code == static_cast<int>(ExitCode::kNodeFailed);
           });
  return run.is_replaceable &&
         std::none_of(run.nodes.begin(), run.nodes.end(), [](const RunNode& node) {
           return node.phase == NodePhase::kFinished && IsTrainerFailure(node.exit_code);
         });
}

absl::string_view ToString(SubmissionState state) {
  switch (state) {
    case SubmissionState::kOpen:
      return "OPEN";
    case SubmissionState::kRunning:
      return "RUNNING";
    case SubmissionState::kChecking:
      return "CHECKING";
    case SubmissionState::kValid:
      return "VALID";
    case SubmissionState::kInvalid:
      return "INVALID";
    case SubmissionState::kCancelled:
      return "CANCELLED";
  }
  return "";
}

absl::string_view ToString(RunState state) {
  switch (state) {
    case RunState::kQueued:
      return "QUEUED";
    case RunState::kAssigned:
      return "ASSIGNED";
    case RunState::kRunning:
      return "RUNNING";
    case RunState::kUploading:
      return "UPLOADING";
    case RunState::kSucceeded:
      return "SUCCEEDED";
    case RunState::kFailed:
      return "FAILED";
    case RunState::kCancelled:
      return "CANCELLED";
  }
  return "";
}

absl::string_view ToString(WorkerState state) {
  switch (state) {
    case WorkerState::kAlive:
      return "ALIVE";
    case WorkerState::kSuspect:
      return "SUSPECT";
    case WorkerState::kLost:
      return "LOST";
    case WorkerState::kDraining:
      return "DRAINING";
    case WorkerState::kGone:
      return "GONE";
  }
  return "";
}

absl::string_view ToString(AllocationState state) {
  switch (state) {
    case AllocationState::kRequested:
      return "REQUESTED";
    case AllocationState::kGranted:
      return "GRANTED";
    case AllocationState::kActive:
      return "ACTIVE";
    case AllocationState::kReleasing:
      return "RELEASING";
    case AllocationState::kEnded:
      return "ENDED";
  }
  return "";
}

absl::string_view ToString(TokenKind kind) {
  switch (kind) {
    case TokenKind::kAccess:
      return "ACCESS";
    case TokenKind::kEnrol:
      return "ENROL";
  }
  return "";
}

absl::string_view ToString(RunEventKind kind) {
  switch (kind) {
    case RunEventKind::kLogLine:
      return "LOG_LINE";
    case RunEventKind::kFirstTouch:
      return "FIRST_TOUCH";
    case RunEventKind::kFinding:
      return "FINDING";
    case RunEventKind::kProgress:
      return "PROGRESS";
  }
  return "";
}

absl::string_view ToString(NodePhase phase) {
  switch (phase) {
    case NodePhase::kNone:
      return "NONE";
    case NodePhase::kExecuting:
      return "EXECUTING";
    case NodePhase::kFinished:
      return "FINISHED";
  }
  return "";
}

std::optional<SubmissionState> ParseSubmissionState(absl::string_view text) {
  using S = SubmissionState;
  for (const S state :
       {S::kOpen, S::kRunning, S::kChecking, S::kValid, S::kInvalid, S::kCancelled}) {
    if (ToString(state) == text) return state;
  }
  return std::nullopt;
}

std::optional<RunState> ParseRunState(absl::string_view text) {
  using S = RunState;
  for (const S state : {S::kQueued, S::kAssigned, S::kRunning, S::kUploading, S::kSucceeded,
                        S::kFailed, S::kCancelled}) {
    if (ToString(state) == text) return state;
  }
  return std::nullopt;
}

}  // namespace assay::core
