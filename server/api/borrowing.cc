#include "server/api/borrowing.h"

#include <string>
#include <utility>

#include "common/rules/borrowing.h"
#include "common/status.h"
#include "server/api/convert.h"
#include "server/api/names.h"

namespace assay::api {
namespace {

// The same source is of the same commit, also where it was unpacked far from its repository.
void KeepCommit(const core::Workload& own, core::Workload* proposed) {
  const core::SourceArchive* const before = core::SourceOf(own);
  auto* const command = std::get_if<core::CommandWorkload>(proposed);
  if (before == nullptr || command == nullptr || !command->source) return;
  if (command->source->sha256 == before->sha256) command->source = *before;
}

// By this method a lender is read.
constexpr absl::string_view kSeeLender = "assay.v1.SubmissionService/GetSubmission";

absl::StatusOr<runtime::Plan> Judge(const Backend* backend, runtime::Plan plan,
                                    const runtime::Queries::BorrowingParties& parties) {
  runtime::BorrowingVerdict verdict =
      backend->rules->CheckBorrowing(plan.spec, parties.own, parties.lender, parties.borrower);
  KeepCommit(parties.own.spec.workload, &plan.spec.workload);
  for (core::Finding& finding : verdict.findings)
    plan.findings.push_back(std::move(finding));
  plan.borrowing = std::move(verdict.record);
  return plan;
}

using Next = absl::AnyInvocable<void(absl::StatusOr<runtime::Plan>)>;

void WithParties(const Backend* backend, runtime::Plan plan, Next next) {
  const core::Borrowing borrowing = *plan.spec.borrowing;
  backend->queries->GetBorrowingParties(
      borrowing, [backend, plan = std::move(plan), next = std::move(next)](
                     absl::StatusOr<runtime::Queries::BorrowingParties> parties) mutable {
        if (!parties.ok()) return next(Annotate(parties.status(), "spec.borrowing"));
        next(Judge(backend, std::move(plan), *parties));
      });
}

// A lender that the caller does not see is none.
void WithLender(const Backend* backend, const auth::Identity& identity, runtime::Plan plan,
                Next next) {
  const core::SubmissionId lender = plan.spec.borrowing->lender;
  backend->queries->GetDisclosure(
      lender, [backend, identity, lender, plan = std::move(plan),
               next = std::move(next)](const absl::StatusOr<core::Disclosure>& disclosure) mutable {
        const absl::Status visible =
            CheckVisible(*backend, identity, kSeeLender, disclosure, NameOf(lender)).status();
        if (!visible.ok()) return next(Annotate(visible, "spec.borrowing.lender_entry"));
        WithParties(backend, std::move(plan), std::move(next));
      });
}

}  // namespace

void WithBorrowing(const Backend* backend, const auth::Identity& identity, absl::string_view method,
                   runtime::Plan plan,
                   absl::AnyInvocable<void(absl::StatusOr<runtime::Plan>)> next) {
  if (!plan.spec.borrowing) return next(std::move(plan));
  const core::Borrowing borrowing = *plan.spec.borrowing;
  // One's own entry first, so that a rival's in its place is not looked at.
  backend->queries->GetDisclosure(
      borrowing.own,
      [backend, identity, borrowing, method = std::string(method), plan = std::move(plan),
       next = std::move(next)](const absl::StatusOr<core::Disclosure>& disclosure) mutable {
        const absl::Status visible =
            CheckVisible(*backend, identity, method, disclosure, NameOf(borrowing.own)).status();
        if (!visible.ok()) return next(Annotate(visible, "spec.borrowing.own_entry"));
        WithLender(backend, identity, std::move(plan), std::move(next));
      });
}

}  // namespace assay::api
