#include "server/runtime/judge_result.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/mllog.h"
#include "common/rules/arrivals.h"
#include "common/rules/run_clocks.h"
#include "common/status.h"
#include "common/telemetry/run_phases.h"
#include "server/runtime/bytes_judge.h"
#include "server/runtime/energy_judge.h"
#include "server/runtime/evidence_file.h"
#include "server/runtime/node_judge.h"
#include "server/runtime/program_judge.h"
#include "server/runtime/time_judge.h"
#include "server/runtime/touch_judge.h"

namespace assay::runtime {
namespace {

absl::StatusOr<core::ArtifactRef> ResultOf(const core::Run& run) {
  const std::string name = core::ResultFileName(run);
  for (const core::ArtifactRef& artifact : run.artifacts)
    if (artifact.file_name == name) return artifact;
  return absl::NotFoundError(absl::StrCat("rank 0 has uploaded no ", name));
}

}  // namespace

absl::StatusOr<core::RunFacts> JudgeResult(const core::Run& run, const core::Submission& submission,
                                           const std::optional<core::Dataset>& dataset,
                                           const std::vector<core::Finding>& seen,
                                           const store::ArtifactStore& artifacts,
                                           const RuleBook& rules) {
  ASSIGN_OR_RETURN(const core::ArtifactRef log, ResultOf(run));
  if (log.size_bytes > kMllogFileBytesMax)
    return absl::InvalidArgumentError(
        absl::StrCat(log.file_name, " has ", log.size_bytes, " bytes; at most ", kMllogFileBytesMax,
                     " are judged: log summaries, and no output of the program"));
  ASSIGN_OR_RETURN(const std::unique_ptr<LogJudge> judge, rules.JudgeLog(submission));
  const std::unique_ptr<rules::ProgramLogCheck> program = CheckOfProgram(run, submission, dataset);
  rules::TimedLog timed;
  telemetry::PhaseReader phases;
  RETURN_IF_ERROR(artifacts.ReadVerified(log.sha256, [&](absl::string_view piece) {
    judge->Add(piece);
    timed.Add(piece);
    phases.Add(piece);
    if (program != nullptr) program->Add(piece);
  }));
  const telemetry::RunPhases declared = phases.Finish();
  const rules::RunClocks clocks = ClocksOf(declared.run_start_ms, run, artifacts);
  const core::Run carried = WithCarriedTouches(run, clocks, artifacts);
  core::RunFacts facts = judge->Finish(carried);
  const std::optional<std::vector<rules::Arrival>> arrivals = ArrivalsOf(run, artifacts);
  if (program != nullptr) JudgeProgram(run, program.get(), &facts);
  if (arrivals.has_value()) {
    JudgeStamps(*arrivals, timed.Finish(), &facts);
    JudgeTime(run, *arrivals, artifacts, &facts);
  } else if (program != nullptr) {
    facts.findings.push_back(rules::NoArrivals());
  }
  JudgeEnergy(run, clocks, artifacts, &facts);
  JudgeBytes(run, declared, submission.spec.node_count, dataset, judge->DemandsFirstPass(), clocks,
             artifacts, &facts);
  JudgeCache(declared, submission.rules.is_staging_timed, &facts);
  JudgePlace(run, submission.spec.node_count, submission.rules.is_staging_timed, artifacts, &facts);
  JudgeTouches(carried, submission.spec.node_count, judge->DemandedAssurance(), artifacts, &facts);
  JudgeNodes(seen, judge->DemandsColdData(), &facts);
  return facts;
}

}  // namespace assay::runtime
