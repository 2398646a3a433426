#include "server/api/import.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/rpc/finding_proto.h"
#include "common/status.h"
#include "server/api/convert.h"

namespace assay::api {
namespace {

constexpr int kRunsMax = 1000;

using Done = absl::AnyInvocable<void(absl::StatusOr<core::Reply>)>;

// One import under way. Owned by the callback that will continue it. Logs are filed one after the
// other, and judged on the upload thread: an operator's bulk import must not hold up reactions.
class ImportJob {
 public:
  ImportJob(const Backend* backend, std::string principal,
            const v1::ImportSubmissionRequest* request, Done done)
      : backend_(backend),
        principal_(std::move(principal)),
        request_(request),
        done_(std::move(done)) {}

  static void Start(const std::shared_ptr<ImportJob>& job) {
    const absl::Status status = job->Prepare();
    if (!status.ok()) return job->done_(status);
    Continue(job);
  }

 private:
  static void Continue(const std::shared_ptr<ImportJob>& job) {
    if (job->next_ == job->request_->runs_size()) return job->Post();
    const v1::ImportedRun& run = job->request_->runs(job->next_);
    job->backend_->uploads->Put(run.file_name(), run.log(),
                                [job](absl::StatusOr<core::ArtifactRef> filed) {
                                  absl::Status status = filed.status();
                                  if (status.ok()) status = job->Take(*std::move(filed));
                                  if (!status.ok()) return job->done_(status);
                                  Continue(job);
                                });
  }

  // Reads everything but the logs.
  absl::Status Prepare() {
    if (request_->source_path().empty() || request_->round().empty())
      return absl::InvalidArgumentError("round or source_path is empty: both name the import");
    if (request_->runs_size() < 1 || request_->runs_size() > kRunsMax) {
      return absl::InvalidArgumentError(absl::StrCat("the import has ", request_->runs_size(),
                                                     " runs; 1 to ", kRunsMax, " are taken"));
    }
    if (request_->pruned_count() < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("pruned_count is ", request_->pruned_count(), ", less than 0"));
    }
    pruned_count_ = request_->pruned_count();
    ASSIGN_OR_RETURN(core::SubmissionSpec spec, FromProto(request_->spec()));
    if (spec.borrowing)
      return absl::InvalidArgumentError(
          "spec.borrowing is set: only an entry of this coordinator can borrow");
    spec.round = request_->round();
    spec.run_count = request_->runs_size();
    command_.source_path = request_->source_path();
    command_.scaling = request_->scaling();
    for (const v1::Finding& finding : request_->findings())
      command_.findings.push_back(FindingFromProto(finding));
    // A round that is known says what judges the logs; the spec of history is kept as published.
    absl::StatusOr<runtime::Plan> plan = backend_->rules->PlanSubmission(spec);
    if (plan.ok()) command_.rules = std::move(plan->rules);
    if (command_.rules.digest.empty()) command_.rules.digest = request_->rules_digest();
    is_judged_here_ = plan.ok();
    command_.spec = std::move(spec);
    submission_.spec = command_.spec;
    submission_.rules = command_.rules;
    submission_.scaling = command_.scaling;
    submission_.is_imported = true;
    submission_.source_path = command_.source_path;
    return absl::OkStatus();
  }

  // Checks and judges the log that was just filed.
  absl::Status Take(core::ArtifactRef filed) {
    const v1::ImportedRun& run = request_->runs(next_);
    if (!run.sha256().empty() && run.sha256() != filed.sha256) {
      return absl::DataLossError(absl::StrCat(run.file_name(), " has digest ", filed.sha256,
                                              ", announced was ", run.sha256(), ": send it again"));
    }
    core::Run judged;
    judged.number = ++next_;
    judged.state = core::RunState::kSucceeded;
    judged.artifacts.push_back(filed);
    judged.facts = is_judged_here_ ? backend_->rules->CheckLog(run.log(), submission_, judged)
                                   : FactsOf(run.judged());
    command_.runs.push_back(
        {.log = std::move(filed), .facts = judged.facts, .file_name = run.file_name()});
    runs_.push_back(std::move(judged));
    return absl::OkStatus();
  }

  // What the sender's rules said, where this coordinator has none for the round.
  static core::RunFacts FactsOf(const v1::Run& run) {
    core::RunFacts facts;
    if (run.has_is_compliant()) facts.is_compliant = run.is_compliant();
    if (run.has_is_converged()) facts.is_converged = run.is_converged();
    if (run.has_run_start_ms()) facts.run_start_ms = run.run_start_ms();
    if (run.has_run_stop_ms()) facts.run_stop_ms = run.run_stop_ms();
    if (run.has_quality()) facts.quality = run.quality();
    if (run.has_epoch_count()) facts.epoch_count = run.epoch_count();
    if (run.has_staging_ms()) facts.staging_ms = run.staging_ms();
    facts.global_batch_size = run.global_batch_size();
    facts.instance_scale = run.instance_scale();
    for (const v1::Finding& finding : run.findings())
      facts.findings.push_back(FindingFromProto(finding));
    return facts;
  }

  void Post() {
    if (is_judged_here_) {
      runtime::Verdict verdict = backend_->rules->Score(submission_, runs_);
      command_.score_minutes = verdict.score_minutes;
      command_.throughput = verdict.throughput;
      command_.convergence = std::move(verdict.convergence);
      if (command_.throughput) command_.throughput->pruned_count = pruned_count_;
      command_.reason = std::move(verdict.reason);
      for (core::Finding& finding : verdict.findings)
        command_.findings.push_back(std::move(finding));
    } else if (request_->has_score_minutes()) {
      command_.score_minutes = request_->score_minutes();
      command_.reason = "scored by the importer: this coordinator has no rules for the round";
    }
    backend_->core->Post({.principal = principal_, .body = std::move(command_)}, std::move(done_));
  }

  const Backend* const backend_;
  const std::string principal_;
  const v1::ImportSubmissionRequest* const request_;
  Done done_;
  bool is_judged_here_ = false;
  int next_ = 0;
  int32_t pruned_count_ = 0;
  core::Submission submission_;  // as the rules want to see it
  std::vector<core::Run> runs_;
  core::ImportSubmission command_;
};

}  // namespace

void Import(const Backend* backend, const std::string& principal,
            const v1::ImportSubmissionRequest& request, Done done) {
  // Shared with the callback that continues it; one at a time.
  const auto job = std::make_shared<ImportJob>(backend, principal, &request, std::move(done));
  ImportJob::Start(job);
}

}  // namespace assay::api
