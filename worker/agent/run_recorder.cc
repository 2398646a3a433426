#include "worker/agent/run_recorder.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/foreign_file.h"
#include "common/log.h"
#include "common/node_clock.h"
#include "common/program_contract.h"
#include "common/rpc/finding_proto.h"
#include "common/rules/facility_round.h"
#include "common/rules/registry.h"
#include "common/status.h"
#include "worker/agent/stage_check.h"
#include "worker/agent/text_proto.h"

namespace assay::agent {
namespace {

// The log stamps in whole milliseconds, truncated; the touch is stamped when its event is read.
constexpr int64_t kTouchToleranceMs = 1;

std::string Sentence(const v1::Finding& finding) {
  return absl::StrCat(finding.rule(), ": ", finding.key(), ": expected ", finding.expected(),
                      ", found ", finding.found());
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunRecorder>> RunRecorder::Open(const RunDirectory& directory,
                                                               const RunKey& key,
                                                               const Clock* clock) {
  std::unique_ptr<RunRecorder> recorder(new RunRecorder(directory, key, clock));
  RETURN_IF_ERROR(recorder->Load());
  return recorder;
}

absl::Status RunRecorder::Load() {
  RETURN_IF_ERROR(LoadTextProto(directory_.SpecPath(), &spec_));
  ASSIGN_OR_RETURN(workload_, MakeWorkload(spec_, directory_));
  RETURN_IF_ERROR(MakeDirectories(directory_.SpoolDirectory()));
  ASSIGN_OR_RETURN(spool_, EventSpool::Open(directory_.SpoolPath(),
                                            [this](const v1::RunEvent& e) { Recall(e); }));
  position_ = spool_->position();
  if (spec_.node_rank() != 0) return absl::OkStatus();
  const absl::Status rules = LoadRules();
  if (!rules.ok()) LOG(WARNING) << "run=" << key_.run << " is not judged live: " << rules;
  RETURN_IF_ERROR(Replay(position_));
  log_.emplace(directory_.ResultPath(spec_.run_number()), position_.log_offset, position_.log_line);
  progress_.emplace(directory_.ProgressPath(), position_.progress_offset, 0);
  return absl::OkStatus();
}

absl::Status RunRecorder::LoadRules() {
  const rules::RuleSet* rules = nullptr;
  if (spec_.rule_set_toml().empty()) {
    rules = rules::FindRuleSet(spec_.round());
  } else {
    ASSIGN_OR_RETURN(own_rules_, rules::ParseFacilityRound(spec_.rule_set_toml(), spec_.round()));
    rules = own_rules_.get();
  }
  if (rules == nullptr) return absl::NotFoundError(absl::StrCat("no round ", spec_.round()));
  checker_.emplace(*rules);
  return absl::OkStatus();
}

// Brings the checker to where the spool ends. Findings of the last line may be missing there, if
// the agent died between the line and them: they are added now.
absl::Status RunRecorder::Replay(const SourcePosition& position) {
  if (!checker_.has_value() || position.log_line == 0) return absl::OkStatus();
  LogTail log(directory_.ResultPath(spec_.run_number()), 0, 0);
  for (;;) {
    ASSIGN_OR_RETURN(const std::vector<TailLine> lines, log.Read(/*is_final=*/true));
    if (lines.empty()) return absl::OkStatus();
    for (const TailLine& line : lines) {
      if (line.line > position.log_line) return absl::OkStatus();
      AddFindings(checker_->AddLine(line.text), line.line);
    }
  }
}

void RunRecorder::Recall(const v1::RunEvent& event) {
  if (event.kind() == v1::RunEvent::FIRST_TOUCH)
    (event.is_attributed() ? attributed_ : observed_).is_spooled = true;
  if (event.kind() == v1::RunEvent::FINDING)
    known_findings_.insert(event.finding().SerializeAsString());
}

absl::Status RunRecorder::Observe(const std::optional<StepExit>& exit) {
  if (is_complete_) return absl::OkStatus();
  const bool is_final = exit.has_value();
  ReadTouch(directory_.TouchPath(), &attributed_);
  ReadTouch(directory_.ObservedTouchPath(), &observed_);
  RETURN_IF_ERROR(ReadLog(is_final));
  RETURN_IF_ERROR(ReadProgress(is_final));
  ReadPauses(is_final);
  ReadFaults(directory_.ClocksPath());
  ReadFaults(directory_.StallsPath());
  ReadFaults(directory_.RanksWatchedPath());
  ReadFaults(directory_.MemoryPath());
  CheckTouch(is_final, &attributed_);
  CheckTouch(is_final, &observed_);
  if (is_final) {
    std::optional<rules::Finding> failure = rules::RankFailure(exit->code, exit->reason);
    if (failure.has_value()) AddFindings({*std::move(failure)}, 0);
  }
  is_complete_ = is_final;
  return absl::OkStatus();
}

absl::Status RunRecorder::ReadLog(bool is_final) {
  while (log_.has_value()) {
    absl::StatusOr<std::vector<TailLine>> lines = log_->Read(is_final);
    if (lines.status().code() == absl::StatusCode::kDataLoss) {
      // A node that lost power keeps what it had synced: the spool may hold more than the log.
      LOG(ERROR) << "run=" << key_.run << " log not followed any more: " << lines.status();
      log_.reset();
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(lines.status());
    if (lines->empty()) return absl::OkStatus();
    for (const TailLine& line : *lines)
      AddLine(line);
  }
  return absl::OkStatus();
}

void RunRecorder::AddLine(const TailLine& line) {
  position_.log_offset = line.end_offset;
  position_.log_line = line.line;
  v1::RunEvent event;
  event.set_kind(v1::RunEvent::LOG_LINE);
  event.set_text(line.text);
  event.set_line(line.line);
  Append(std::move(event));
  if (!checker_.has_value()) return;
  AddFindings(checker_->AddLine(line.text), line.line);
  if (is_stage_checked_) return;
  const std::optional<double> run_start_ms = checker_->facts().run_start_ms;
  if (run_start_ms.has_value()) LookAtStage(absl::UnixEpoch() + absl::Milliseconds(*run_start_ms));
}

// Once, as soon as the clock is known to run: by the log, or on a node that has none by the first
// touch.
void RunRecorder::LookAtStage(absl::Time start) {
  is_stage_checked_ = true;
  v1::WorkerConfig worker;
  if (!spec_.dataset().is_staged() || spec_.is_staging_timed()) return;
  if (!LoadTextProto(directory_.WorkerPath(), &worker).ok()) return;
  const std::string stage = directory_.StagePath(worker.stage_directory());
  const std::optional<NodeFault> fault =
      CheckStage(SampleFoldersBelow(*workload_, stage), start, *clock_);
  if (fault.has_value()) AddNodeFinding(*fault);
}

void RunRecorder::AddNodeFinding(const NodeFault& fault) {
  if (!rules::IsOfNode(fault.rule)) return;
  AddFindings(
      {rules::NodeFinding(fault.rule, absl::StrCat("node ", spec_.node_rank(), ": ", fault.found))},
      0);
}

absl::Status RunRecorder::ReadProgress(bool is_final) {
  while (progress_.has_value()) {
    absl::StatusOr<std::vector<TailLine>> lines = progress_->Read(is_final);
    if (!lines.ok()) progress_.reset();  // for people only: no reason to stop
    if (!lines.ok() || lines->empty()) return absl::OkStatus();
    for (TailLine& line : *lines) {
      position_.progress_offset = line.end_offset;
      v1::RunEvent event;
      event.set_kind(v1::RunEvent::PROGRESS);
      event.set_text(std::move(line.text));
      Append(std::move(event));
    }
  }
  return absl::OkStatus();
}

void RunRecorder::ReadTouch(const std::string& path, WitnessedTouch* witnessed) {
  if (witnessed->touch.has_value()) return;
  absl::StatusOr<Touch> touch = directory_.ReadTouch(path);
  if (!touch.ok()) {
    if (touch.status().code() != absl::StatusCode::kNotFound) LOG(ERROR) << touch.status();
    return;
  }
  witnessed->touch = *std::move(touch);
  if (witnessed->is_spooled) return;
  witnessed->is_spooled = true;
  v1::RunEvent event;
  event.set_kind(v1::RunEvent::FIRST_TOUCH);
  event.set_text(TouchJson(*witnessed->touch));
  event.set_wall_us(witnessed->touch->stamp.wall_us);  // of the touch itself
  event.set_mono_ns(witnessed->touch->stamp.mono_ns);
  event.set_is_attributed(witnessed->touch->is_attributed);
  Append(std::move(event));
  if (spec_.node_rank() != 0 && !is_stage_checked_)
    LookAtStage(absl::FromUnixMicros(witnessed->touch->stamp.wall_us));
}

// A finding is spooled once, so the file is simply read again.
void RunRecorder::ReadPauses(bool is_final) {
  if (!FileExists(directory_.PausesPath())) return;
  const absl::StatusOr<std::vector<Pause>> pauses = directory_.ReadPauses();
  if (!pauses.ok()) {
    LOG(ERROR) << pauses.status();
    return;
  }
  for (const Pause& pause : *pauses) {
    if (!pause.end.has_value() && !is_final) continue;
    std::string found =
        absl::StrCat("rank ", pause.rank, " stopped at ", pause.begin.wall_us / 1000, " ms");
    if (pause.end.has_value()) {
      absl::StrAppend(&found, " for ", (pause.end->mono_ns - pause.begin.mono_ns) / 1'000'000,
                      " ms");
    } else {
      absl::StrAppend(&found, " and not continued");
    }
    AddFindings({rules::StoppedRank(std::move(found))}, 0);
  }
}

void RunRecorder::ReadFaults(const std::string& path) {
  if (!FileExists(path)) return;
  const absl::StatusOr<std::vector<NodeFault>> faults = directory_.ReadFaults(path);
  if (!faults.ok()) {
    LOG(ERROR) << faults.status();
    return;
  }
  for (const NodeFault& fault : *faults)
    AddNodeFinding(fault);
}

void RunRecorder::CheckTouch(bool is_final, WitnessedTouch* witnessed) {
  if (witnessed->is_checked || !witnessed->touch.has_value() || !checker_.has_value()) return;
  const std::optional<double> run_start_ms = checker_->facts().run_start_ms;
  // Without run_start it may still be on its way.
  if (!run_start_ms.has_value() && !is_final) return;
  witnessed->is_checked = true;
  rules::FirstTouch touch;
  touch.touch_ms = witnessed->touch->stamp.wall_us / 1000;
  touch.path = witnessed->touch->path;
  touch.witness = witnessed->touch->mechanism;
  touch.is_attributed = witnessed->touch->is_attributed;
  touch.tolerance_ms = kTouchToleranceMs;
  AddFindings(rules::CheckFirstTouch(run_start_ms, touch), 0);
}

void RunRecorder::AddFindings(const std::vector<rules::Finding>& findings, int64_t line) {
  for (const rules::Finding& finding : findings) {
    v1::Finding proto = FindingToProto(finding);
    if (proto.line() == 0) proto.set_line(line);
    if (!known_findings_.insert(proto.SerializeAsString()).second) continue;
    v1::RunEvent event;
    event.set_kind(v1::RunEvent::FINDING);
    event.set_text(Sentence(proto));
    event.set_line(proto.line());
    *event.mutable_finding() = std::move(proto);
    Append(std::move(event));
  }
}

void RunRecorder::Append(v1::RunEvent event) {
  if (event.wall_us() == 0) {
    const Stamp stamp = StampNow(*clock_);
    event.set_wall_us(stamp.wall_us);
    event.set_mono_ns(stamp.mono_ns);
  }
  spool_->Append(std::move(event), position_);
  if (!sync_due_.has_value()) sync_due_ = clock_->Mono() + kSyncDelay;
  if (spool_->last_seq() - spool_->durable_seq() >= kSyncEvents) sync_due_ = clock_->Mono();
}

std::optional<MonoTime> RunRecorder::sync_due() const {
  return sync_due_;
}

absl::StatusOr<bool> RunRecorder::SyncIfDue() {
  if (!sync_due_.has_value()) return false;
  if (!is_complete_ && clock_->Mono() < *sync_due_) return false;
  const absl::Status status = spool_->Sync();
  if (!status.ok()) {
    sync_due_ = clock_->Mono() + absl::Seconds(1);  // a full disk may be emptied
    return status;
  }
  sync_due_.reset();
  return true;
}

RunObserved RunRecorder::Observation(bool is_started, const std::optional<StepExit>& exit) const {
  RunObserved seen{.key = key_, .is_started = is_started, .spooled_seq = spool_->durable_seq()};
  seen.exit = exit;
  seen.is_spool_complete = is_complete_ && spool_->durable_seq() == spool_->last_seq();
  if (!seen.is_spool_complete) return seen;
  for (const ArtifactFile& file : Artifacts())
    seen.artifacts.push_back(file.name);
  return seen;
}

std::vector<ArtifactFile> RunRecorder::Artifacts() const {
  const int node = spec_.node_rank();
  std::vector<ArtifactFile> files;
  const auto add = [&files](std::string name, std::string path) {
    if (FileExists(path)) files.push_back({std::move(name), std::move(path)});
  };
  if (node == 0)
    add(absl::StrCat("result_", spec_.run_number(), ".txt"),
        directory_.ResultPath(spec_.run_number()));
  if (node == 0) add("arrivals.jsonl", directory_.ArrivalsPath());
  add(ClockSamplesName(node), directory_.ClockSamplesPath());
  for (ArtifactFile& file : workload_->Collected())
    add(std::move(file.name), std::move(file.path));
  add(absl::StrCat(kTouchPrefix, node, ".json"), directory_.TouchPath());
  add(absl::StrCat(kObservedPrefix, node, ".json"), directory_.ObservedTouchPath());
  add(absl::StrCat("caches_", node, ".json"), directory_.CachesPath());
  add(absl::StrCat("telemetry_", node, ".bin"), directory_.TelemetryPath());
  add(absl::StrCat(kForeignPrefix, node, ".jsonl"), directory_.ForeignPath());
  add(absl::StrCat("step_", node, ".log"), directory_.StepLogPath());
  add(absl::StrCat("system_", node, ".json"), directory_.SystemPath());
  add(absl::StrCat(kPreflightPrefix, node, ".json"), directory_.PreflightPath());
  add(absl::StrCat(kMaterialsPrefix, node, ".json"), directory_.MaterialsPath());
  return files;
}

}  // namespace assay::agent
