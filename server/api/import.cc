#include "server/api/import.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/rpc/finding_proto.h"
#include "common/status.h"
#include "server/api/convert.h"
#include "server/core/decide.h"

namespace assay::api {
namespace {

// What the senders' verdicts of all runs of an entry may take: they are held until the end.
constexpr int64_t kHeaderBytesMax = 16 << 20;

// What the sender's rules said, where this coordinator has none for the round.
core::RunFacts FactsOf(const v1::Run& run) {
  core::RunFacts facts;
  if (run.has_is_compliant()) facts.is_compliant = run.is_compliant();
  if (run.has_is_converged()) facts.is_converged = run.is_converged();
  if (run.has_run_start_ms()) facts.run_start_ms = run.run_start_ms();
  if (run.has_run_stop_ms()) facts.run_stop_ms = run.run_stop_ms();
  if (run.has_quality()) facts.quality = run.quality();
  if (run.has_epoch_count()) facts.epoch_count = run.epoch_count();
  if (run.has_staging_ms()) facts.staging_ms = run.staging_ms();
  if (run.has_arrival_run_ms()) facts.arrival_run_ms = run.arrival_run_ms();
  if (run.has_time_error_us()) facts.time_error_us = run.time_error_us();
  if (run.has_coordinator_run_ms()) facts.coordinator_run_ms = run.coordinator_run_ms();
  if (run.has_coordinator_error_us()) facts.coordinator_error_us = run.coordinator_error_us();
  if (run.has_energy_joules()) facts.energy_joules = run.energy_joules();
  if (run.has_energy_error_joules()) facts.energy_error_joules = run.energy_error_joules();
  facts.energy_scope = run.energy_scope();
  for (const v1::SwitchPower& one : run.switches())
    facts.switches.push_back({.name = one.name(), .watts = one.watts()});
  facts.global_batch_size = run.global_batch_size();
  facts.instance_scale = run.instance_scale();
  for (const v1::Finding& finding : run.findings())
    facts.findings.push_back(FindingFromProto(finding));
  return facts;
}

// When the entry was or will be published; a header that does not say means that it is.
absl::StatusOr<int64_t> PublicationOf(const v1::ImportHeader& header, int64_t now_us) {
  if (!header.has_publish_time()) return now_us;
  const int64_t seconds = header.publish_time().seconds();
  if (seconds > 0) return seconds * 1'000'000;
  return absl::InvalidArgumentError(
      absl::StrCat("publish_time is ", seconds,
                   " s since 1970: give the day on which the round was published, "
                   "or leave it out if it is published already"));
}

}  // namespace

Import::Import(const Backend* backend, absl::StatusOr<auth::Identity> admission,
               v1::Submission* response)
    : PieceStream(backend->silences),
      backend_(backend),
      admission_(std::move(admission)),
      response_(response) {
  admission_.ok() ? Next() : End(admission_.status());
}

void Import::Take(v1::ImportSubmissionRequest* message) {
  using Part = v1::ImportSubmissionRequest;
  if (header_.has_value() == (message->part_case() == Part::kHeader)) {
    return End(absl::InvalidArgumentError(
        header_.has_value() ? "a second header: send one import at a time"
                            : "the first message is no header: send the entry first"));
  }
  switch (message->part_case()) {
    case Part::kHeader: {
      const absl::Status status = TakeHeader(message->header());
      return status.ok() ? Next() : End(status);
    }
    case Part::kRun:
      return CloseRun([this, run = std::move(*message->mutable_run())] { TakeRun(run); });
    case Part::kLog:
      return TakeLog(std::move(*message->mutable_log()));
    case Part::PART_NOT_SET:
      is_whole_ = true;
      return Next();
  }
}

absl::Status Import::TakeHeader(const v1::ImportHeader& header) {
  header_ = header;
  if (header.source_path().empty() || header.round().empty())
    return absl::InvalidArgumentError("round or source_path is empty: both name the import");
  ASSIGN_OR_RETURN(core::SubmissionSpec spec, FromProto(header.spec()));
  if (spec.borrowing)
    return absl::InvalidArgumentError(
        "spec.borrowing is set: only an entry of this coordinator can borrow");
  spec.round = header.round();
  command_.source_path = header.source_path();
  command_.scaling = header.scaling();
  command_.system_description_json = header.system_description_json();
  ASSIGN_OR_RETURN(command_.published_at_us,
                   PublicationOf(header, absl::ToUnixMicros(backend_->clock->Wall())));
  for (const v1::Finding& finding : header.findings())
    command_.findings.push_back(FindingFromProto(finding));
  // A round that is known says what judges the logs; the spec of history is kept as published.
  absl::StatusOr<runtime::Plan> plan = backend_->rules->PlanSubmission(spec);
  if (plan.ok()) command_.rules = std::move(plan->rules);
  if (command_.rules.digest.empty()) command_.rules.digest = header.rules_digest();
  is_judged_here_ = plan.ok();
  command_.spec = std::move(spec);
  submission_.spec = command_.spec;
  submission_.rules = command_.rules;
  submission_.scaling = command_.scaling;
  submission_.is_imported = true;
  submission_.source_path = command_.source_path;
  return absl::OkStatus();
}

absl::Status Import::CheckRun(const v1::ImportedRun& run) {
  header_bytes_ += static_cast<int64_t>(run.ByteSizeLong());
  if (runs_.size() >= static_cast<size_t>(core::kRunCountMax)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the import has more than ", core::kRunCountMax, " runs"));
  }
  if (header_bytes_ > kHeaderBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("the verdicts of the runs have more than ", kHeaderBytesMax, " bytes"));
  }
  return absl::OkStatus();
}

void Import::TakeRun(const v1::ImportedRun& run) {
  if (const absl::Status status = CheckRun(run); !status.ok()) return End(status);
  backend_->uploads->Begin(
      {.file_name = run.file_name(), .sha256 = run.sha256(), .size_bytes = run.size_bytes()},
      [this, run](absl::StatusOr<runtime::Uploads::Ticket> ticket) {
        if (!ticket.ok()) return End(ticket.status());
        tickets_.push_back(*ticket);
        open_ = OpenRun{run, *ticket};
        Next();
      });
}

void Import::TakeLog(std::string bytes) {
  if (!open_.has_value())
    return End(absl::InvalidArgumentError("a piece of a log before its run: send the run first"));
  backend_->uploads->Append(open_->ticket, std::move(bytes), [this](const absl::Status& status) {
    status.ok() ? Next() : End(status);
  });
}

void Import::CloseRun(absl::AnyInvocable<void()> next) {
  if (!open_.has_value()) return next();
  backend_->uploads->Finish(open_->ticket, [this, next = std::move(next)](
                                               absl::StatusOr<core::ArtifactRef> filed) mutable {
    if (!filed.ok()) return End(filed.status());
    if (!is_judged_here_) {
      AddRun(*std::move(filed), FactsOf(open_->header.judged()));
      return next();
    }
    // Judged on the upload thread: a bulk import must not hold up reactions.
    absl::StatusOr<std::unique_ptr<runtime::LogJudge>> made =
        backend_->rules->JudgeLog(submission_);
    if (!made.ok()) return End(made.status());
    const std::shared_ptr<runtime::LogJudge> judge = *std::move(made);
    backend_->uploads->Read(
        open_->ticket, [judge](absl::string_view bytes) { judge->Add(bytes); },
        [this, judge, log = *std::move(filed),
         next = std::move(next)](const absl::Status& status) mutable {
          if (!status.ok()) return End(status);
          core::Run run;
          run.number = static_cast<int32_t>(runs_.size()) + 1;
          run.state = core::RunState::kSucceeded;
          run.artifacts.push_back(log);
          AddRun(std::move(log), judge->Finish(run));
          next();
        });
  });
}

void Import::AddRun(core::ArtifactRef log, core::RunFacts facts) {
  core::Run run;
  run.number = static_cast<int32_t>(runs_.size()) + 1;
  run.state = core::RunState::kSucceeded;
  run.artifacts.push_back(log);
  run.facts = facts;
  runs_.push_back(std::move(run));
  command_.runs.push_back(
      {.log = std::move(log), .facts = std::move(facts), .file_name = open_->header.file_name()});
  open_.reset();
}

void Import::Complete() {
  if (!header_.has_value())
    return End(absl::InvalidArgumentError("an import without a message: send a header"));
  // The end of a call looks the same whether its client has finished or was killed.
  if (!is_whole_)
    return End(absl::AbortedError("the import stopped half-way: end it with an empty message"));
  CloseRun([this] {
    if (runs_.empty()) return End(absl::InvalidArgumentError("the import has no run"));
    if (const absl::Status scored = Score(); !scored.ok()) return End(scored);
    Post();
  });
}

absl::Status Import::Score() {
  command_.spec.run_count = static_cast<int32_t>(runs_.size());
  submission_.spec.run_count = command_.spec.run_count;
  if (is_judged_here_) {
    ASSIGN_OR_RETURN(runtime::Verdict verdict, backend_->rules->Score(submission_, runs_));
    command_.score_minutes = verdict.score_minutes;
    command_.throughput = verdict.throughput;
    command_.convergence = std::move(verdict.convergence);
    if (command_.throughput) command_.throughput->pruned_count = header_->pruned_count();
    command_.reason = std::move(verdict.reason);
    for (core::Finding& finding : verdict.findings)
      command_.findings.push_back(std::move(finding));
  } else if (header_->has_score_minutes()) {
    command_.score_minutes = header_->score_minutes();
    command_.reason = "scored by the importer: this coordinator has no rules for the round";
  }
  return absl::OkStatus();
}

void Import::Post() {
  backend_->core->Post(
      CommandOf(*admission_, std::move(command_)), [this](absl::StatusOr<core::Reply> reply) {
        if (!reply.ok()) return End(reply.status());
        core::SubmissionReply answer = Expect<core::SubmissionReply>(*std::move(reply));
        const bool is_repeated = answer.is_repeated;
        auto finish = [this, answer = std::move(answer)]() mutable {
          WithSubmission(*backend_, std::move(answer),
                         [this](absl::StatusOr<core::Submission> made) {
                           if (made.ok()) *response_ = ToProto(*made);
                           End(made.status());
                         });
        };
        // What was imported before keeps the logs that it came with.
        if (is_repeated) return Drop(std::move(finish));
        for (const runtime::Uploads::Ticket ticket : std::exchange(tickets_, {}))
          backend_->uploads->Keep(ticket);
        finish();
      });
}

void Import::Drop(absl::AnyInvocable<void()> done) {
  if (tickets_.empty()) return done();
  const runtime::Uploads::Ticket last = tickets_.back();
  tickets_.pop_back();
  for (const runtime::Uploads::Ticket ticket : std::exchange(tickets_, {}))
    backend_->uploads->Drop(ticket, [] {});
  backend_->uploads->Drop(last, std::move(done));  // in order: the others are gone then
}

}  // namespace assay::api
