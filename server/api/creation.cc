#include "server/api/creation.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "common/secret.h"
#include "common/status.h"
#include "server/api/borrowing.h"
#include "server/api/convert.h"
#include "server/api/names.h"
#include "server/auth/permissions.h"
#include "server/core/decide.h"

namespace assay::api {

absl::StatusOr<runtime::Plan> PlanFor(const Backend& backend, const auth::Identity& identity,
                                      absl::string_view method, const v1::SubmissionSpec& message) {
  ASSIGN_OR_RETURN(const core::SubmissionSpec spec, FromProto(message));
  RETURN_IF_ERROR(auth::CheckOrganization(identity, method, spec.organization));
  RETURN_IF_ERROR(core::CheckChoices(spec));
  return backend.rules->PlanSubmission(spec);
}

absl::StatusOr<runtime::Plan> ReadCreate(const Backend& backend, const auth::Identity& identity,
                                         const v1::CreateSubmissionRequest& request) {
  RETURN_IF_ERROR(CheckRequestId(request.request_id()));
  ASSIGN_OR_RETURN(runtime::Plan plan, PlanFor(backend, identity, kCreate, request.spec()));
  const int32_t seed_count = plan.spec.run_count + plan.spec.replacement_count_max;
  if (seed_count < 1 || seed_count > core::kPageSizeMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("run_count is ", plan.spec.run_count, " and replacement_count_max ",
                     plan.spec.replacement_count_max, ": together give 1 to ", core::kPageSizeMax));
  }
  return plan;
}

core::Command ToCommand(const auth::Identity& identity, const std::string& request_id,
                        runtime::Plan plan) {
  const int32_t seed_count = plan.spec.run_count + plan.spec.replacement_count_max;
  return CommandOf(identity, core::CreateSubmission{.request_id = request_id,
                                                    .spec = std::move(plan.spec),
                                                    .rules = std::move(plan.rules),
                                                    .findings = std::move(plan.findings),
                                                    .seeds = MakeSeeds(seed_count),
                                                    .borrowing = std::move(plan.borrowing)});
}

void WithJudgement(const Backend* backend, const auth::Identity& identity, absl::string_view method,
                   runtime::Plan plan,
                   absl::AnyInvocable<void(absl::StatusOr<runtime::Plan>)> next) {
  WithBorrowing(
      backend, identity, method, std::move(plan),
      [backend, next = std::move(next)](absl::StatusOr<runtime::Plan> borrowed) mutable {
        if (!borrowed.ok()) return next(borrowed.status());
        const std::string name = borrowed->spec.dataset;
        backend->queries->GetDataset(
            name, [backend, plan = *std::move(borrowed),
                   next = std::move(next)](const absl::StatusOr<core::Dataset>& dataset) mutable {
              if (!dataset.ok() && !absl::IsNotFound(dataset.status()))
                return next(dataset.status());
              if (dataset.ok())
                for (core::Finding& finding : backend->rules->CheckDataset(plan.spec, *dataset))
                  plan.findings.push_back(std::move(finding));
              next(std::move(plan));
            });
      });
}

void WithKnownSource(const Backend* backend, runtime::Plan plan,
                     absl::AnyInvocable<void(absl::StatusOr<runtime::Plan>)> next) {
  const core::SourceArchive* const source = core::SourceOf(plan.spec.workload);
  if (source == nullptr) return next(std::move(plan));
  const std::string sha256 = source->sha256;
  const core::VisibleTo owner = {.organization = plan.spec.organization};
  backend->queries->GetArtifact(
      owner, sha256,
      [plan = std::move(plan),
       next = std::move(next)](const absl::StatusOr<core::ArtifactInfo>& found) mutable {
        const core::SourceArchive& wanted = *core::SourceOf(plan.spec.workload);
        if (!found.ok() && !absl::IsNotFound(found.status())) return next(found.status());
        const bool is_known = found.ok() && found->organization == plan.spec.organization &&
                              found->artifact.size_bytes == wanted.size_bytes;
        if (is_known) return next(std::move(plan));
        next(absl::NotFoundError(absl::StrCat(
            "spec.command.source: ", plan.spec.organization, " has no source ",
            wanted.sha256.substr(0, 80),
            " here: send it along with CreateSubmissionWithSource, as `assay submit` does")));
      });
}

}  // namespace assay::api
