#include "server/runtime/effect_handler.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/program_contract.h"
#include "common/rules/set_nodes.h"
#include "server/runtime/node_judge.h"
#include "server/store/reader.h"

namespace assay::runtime {
namespace {

// Without what it is about an effect cannot be done; at the next start it comes again.
template <typename T>
bool IsRead(const absl::StatusOr<T>& value) {
  if (!value.ok()) LOG(ERROR) << "effect left for the next start: " << value.status();
  return value.ok();
}

std::vector<core::Finding> CheckNodes(std::vector<core::Run> runs, bool is_throughput) {
  std::sort(runs.begin(), runs.end(), [](const core::Run& a, const core::Run& b) {
    return std::pair(a.assigned_at_us, a.id) < std::pair(b.assigned_at_us, b.id);
  });
  std::vector<rules::RunNodes> nodes;
  for (const core::Run& run : runs) {
    rules::RunNodes known{run.id.ToString(), core::NodeNames(run)};
    for (const core::ArtifactRef& file : run.artifacts)
      if (absl::StartsWith(file.file_name, kMaterialsPrefix))
        known.materials[file.file_name] = file.sha256;
    nodes.push_back(std::move(known));
  }
  std::vector<core::Finding> findings = rules::CheckSetMaterials(nodes);
  // Instances run side by side, each on nodes of its own.
  if (is_throughput) return findings;
  for (core::Finding& finding : rules::CheckSetNodes(nodes))
    findings.push_back(std::move(finding));
  return findings;
}

}  // namespace

EffectHandler::EffectHandler(std::unique_ptr<ResultJudge> judge,
                             std::unique_ptr<store::Reader> reader)
    : judge_(std::move(judge)), reader_(std::move(reader)) {}

EffectHandler::~EffectHandler() = default;
EffectHandler::EffectHandler(EffectHandler&&) noexcept = default;

std::optional<core::Command> EffectHandler::Handle(const core::Effect& effect) {
  Result result = std::visit([this](const auto& what) { return Do(what); }, effect);
  if (!result.has_value()) return std::nullopt;
  return core::Command{std::string(core::kCoordinator), *std::move(result)};
}

EffectHandler::Result EffectHandler::Do(const core::CheckLog& effect) {
  const absl::StatusOr<core::Run> run = reader_->GetRun(effect.run);
  if (!IsRead(run) || run->state != core::RunState::kUploading) return std::nullopt;
  const absl::StatusOr<core::Submission> submission = reader_->GetSubmission(run->submission);
  if (!IsRead(submission)) return std::nullopt;
  core::LogChecked checked{.run = effect.run};
  std::optional<core::Dataset> dataset;
  absl::StatusOr<core::Dataset> found = reader_->GetDataset(submission->spec.dataset);
  if (found.ok()) dataset = *std::move(found);
  absl::StatusOr<core::RunFacts> facts =
      judge_->JudgeRun(*run, *submission, dataset, SeenOf(effect.run));
  if (facts.ok()) {
    checked.facts = *std::move(facts);
  } else {
    checked.error = absl::StrCat("its log cannot be judged: ", facts.status().message());
  }
  return checked;
}

EffectHandler::Result EffectHandler::Do(const core::ScoreSubmission& effect) {
  const absl::StatusOr<core::Submission> submission = reader_->GetSubmission(effect.submission);
  if (!IsRead(submission) || submission->state != core::SubmissionState::kChecking)
    return std::nullopt;
  const absl::StatusOr<std::vector<core::Run>> runs = reader_->RunsOf(effect.submission);
  if (!IsRead(runs)) return std::nullopt;
  std::vector<core::Run> succeeded;
  for (const core::Run& run : *runs)
    if (run.state == core::RunState::kSucceeded) succeeded.push_back(run);
  absl::StatusOr<Verdict> verdict = judge_->Score(*submission, succeeded);
  if (!verdict.ok()) {
    // No other rules may end it; the effect comes back at the next start.
    LOG(ERROR) << "submission=" << effect.submission
               << " is not scored status=" << Quoted(verdict.status());
    return std::nullopt;
  }
  for (core::Finding& finding :
       CheckNodes(std::move(succeeded), core::IsThroughput(submission->spec)))
    verdict->findings.push_back(std::move(finding));
  return core::SetScored{.submission = effect.submission,
                         .score_minutes = verdict->score_minutes,
                         .findings = std::move(verdict->findings),
                         .reason = std::move(verdict->reason),
                         .convergence = std::move(verdict->convergence),
                         .throughput = verdict->throughput};
}

std::vector<core::Finding> EffectHandler::SeenOf(core::RunId run) {
  absl::StatusOr<std::vector<core::Finding>> found = reader_->FindingsOf(run, kNodeFindingsMax);
  if (found.ok()) return *std::move(found);
  LOG(ERROR) << "run=" << run << " is judged without what its nodes saw: " << found.status();
  return {};
}

}  // namespace assay::runtime
