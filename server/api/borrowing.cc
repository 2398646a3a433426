#include "server/api/borrowing.h"

#include <string>
#include <utility>

#include "common/rules/borrowing.h"
#include "common/status.h"
#include "server/api/convert.h"
#include "server/api/guard.h"

namespace assay::api {
namespace {

absl::StatusOr<runtime::Plan> Judge(const Backend* backend, const auth::Identity& identity,
                                    absl::string_view method, runtime::Plan plan,
                                    const runtime::Queries::BorrowingParties& parties) {
  const auto see = [&](const core::Submission& entry) {
    return CheckVisible(identity, method, entry.spec.organization, NameOf(entry.id));
  };
  RETURN_IF_ERROR(Annotate(see(parties.own), "spec.borrowing.own_entry"));
  runtime::BorrowingVerdict verdict =
      backend->rules->CheckBorrowing(plan.spec, parties.own, parties.lender, parties.borrower);
  if (!see(parties.lender).ok())
    verdict.findings = rules::WithoutLender(std::move(verdict.findings));
  for (core::Finding& finding : verdict.findings)
    plan.findings.push_back(std::move(finding));
  plan.borrowing = std::move(verdict.record);
  return plan;
}

}  // namespace

void WithBorrowing(const Backend* backend, const auth::Identity& identity, absl::string_view method,
                   runtime::Plan plan,
                   absl::AnyInvocable<void(absl::StatusOr<runtime::Plan>)> next) {
  if (!plan.spec.borrowing) return next(std::move(plan));
  const core::Borrowing borrowing = *plan.spec.borrowing;
  backend->queries->GetBorrowingParties(
      borrowing,
      [backend, identity, method = std::string(method), plan = std::move(plan),
       next = std::move(next)](absl::StatusOr<runtime::Queries::BorrowingParties> parties) mutable {
        if (!parties.ok()) return next(Annotate(parties.status(), "spec.borrowing"));
        next(Judge(backend, identity, method, std::move(plan), *parties));
      });
}

}  // namespace assay::api
