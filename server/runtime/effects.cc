#include "server/runtime/effects.h"

#include <string>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"
#include "server/runtime/judge_result.h"
#include "server/store/artifacts.h"
#include "server/store/reader.h"

namespace assay::runtime {
namespace {

// Far above the number of runs and submissions that can wait for a verdict at once.
constexpr size_t kEffectsMax = 1 << 20;

core::Command FromCoordinator(core::CommandBody body) {
  return core::Command{std::string(core::kCoordinator), std::move(body)};
}

// What the log cannot show and only the agents saw. It is evidence, by which no run fails.
void AddPauses(core::RunId run, store::Reader* reader, core::RunFacts* facts) {
  constexpr int32_t kFindingsMax = 1000;
  const absl::StatusOr<std::vector<core::Finding>> found = reader->FindingsOf(run, kFindingsMax);
  if (!found.ok()) {
    LOG(ERROR) << "run=" << run << " is judged without its pauses: " << found.status();
    return;
  }
  for (core::Finding finding : *found) {
    if (!absl::StartsWith(finding.rule_id, "R-PAU-")) continue;
    finding.severity = core::Severity::kWarning;
    facts->findings.push_back(std::move(finding));
  }
}

}  // namespace

Effects::Effects(const RuleBook* rules, std::unique_ptr<store::Reader> reader,
                 const store::ArtifactStore* artifacts, Launch launch)
    : rules_(rules),
      reader_(std::move(reader)),
      artifacts_(artifacts),
      launch_(std::move(launch)),
      thread_("effects", kEffectsMax) {}

Effects::~Effects() {
  Stop();
}

void Effects::Stop() {
  thread_.Stop();
}

void Effects::SetPost(Post post) {
  post_ = std::move(post);
}

void Effects::Run(std::vector<core::Effect> effects) {
  for (core::Effect& effect : effects) {
    const bool is_taken = thread_.Post([this, effect = std::move(effect)] {
      std::visit([this](const auto& what) { Do(what); }, effect);
    });
    // Only while stopping; the next start derives it from the state again.
    if (!is_taken) LOG(WARNING) << "effect left for the next start";
  }
}

void Effects::Do(const core::CheckLog& effect) {
  const absl::StatusOr<core::Run> run = reader_->GetRun(effect.run);
  if (!run.ok() || run->state != core::RunState::kUploading) return;
  const absl::StatusOr<core::Submission> submission = reader_->GetSubmission(run->submission);
  if (!submission.ok()) return;
  core::LogChecked checked{.run = effect.run};
  absl::StatusOr<core::RunFacts> facts = JudgeResult(*run, *submission, *artifacts_, *rules_);
  if (facts.ok()) {
    checked.facts = *std::move(facts);
    AddPauses(effect.run, reader_.get(), &checked.facts);
  } else {
    checked.error = absl::StrCat("its log cannot be judged: ", facts.status().message());
  }
  post_(FromCoordinator(std::move(checked)));
}

void Effects::Do(const core::ScoreSubmission& effect) {
  const absl::StatusOr<core::Submission> submission = reader_->GetSubmission(effect.submission);
  if (!submission.ok() || submission->state != core::SubmissionState::kChecking) return;
  const absl::StatusOr<std::vector<core::Run>> runs = reader_->RunsOf(effect.submission);
  if (!runs.ok()) return;
  std::vector<core::Run> succeeded;
  for (const core::Run& run : *runs)
    if (run.state == core::RunState::kSucceeded) succeeded.push_back(run);
  absl::StatusOr<Verdict> verdict = rules_->Score(*submission, succeeded);
  if (!verdict.ok()) {
    // No other rules may end it; the effect comes back at the next start.
    LOG(ERROR) << "submission=" << effect.submission
               << " is not scored status=" << Quoted(verdict.status());
    return;
  }
  post_(FromCoordinator(core::SetScored{.submission = effect.submission,
                                        .score_minutes = verdict->score_minutes,
                                        .findings = std::move(verdict->findings),
                                        .reason = std::move(verdict->reason),
                                        .convergence = std::move(verdict->convergence)}));
}

void Effects::Do(const core::LaunchAgents& effect) {
  if (!launch_) return;
  const absl::Status status = launch_(effect);
  post_(FromCoordinator(core::LaunchFinished{.worker_count = effect.worker_count,
                                             .error = std::string(status.message())}));
}

}  // namespace assay::runtime
