// The pages of the site, which routes.cc names. Each is a PageFunction (server/web/page.h).

#ifndef SERVER_WEB_PAGES_PAGES_H_
#define SERVER_WEB_PAGES_PAGES_H_

#include "absl/status/statusor.h"

#include "server/web/page.h"

namespace assay::web {

absl::StatusOr<Response> HomePage(const Context& context, const Request& request);
// Rounds and what was handed in to them.
absl::StatusOr<Response> RoundPage(const Context& context, const Request& request);
absl::StatusOr<Response> ResultsPage(const Context& context, const Request& request);
// One entry, on a page of evidence and on one to be printed.
absl::StatusOr<Response> EntryPage(const Context& context, const Request& request);
absl::StatusOr<Response> EntryDigestPage(const Context& context, const Request& request);
// One run, its log, its files.
absl::StatusOr<Response> RunPage(const Context& context, const Request& request);
absl::StatusOr<Response> RunLogPage(const Context& context, const Request& request);
absl::StatusOr<Response> RunFilePage(const Context& context, const Request& request);
absl::StatusOr<Response> RunLivePage(const Context& context, const Request& request);
// Several entries beside each other.
absl::StatusOr<Response> ComparePage(const Context& context, const Request& request);
absl::StatusOr<Response> ScalingPage(const Context& context, const Request& request);
absl::StatusOr<Response> HistoryPage(const Context& context, const Request& request);
absl::StatusOr<Response> QueryPage(const Context& context, const Request& request);
// The machine and who did what.
absl::StatusOr<Response> FleetPage(const Context& context, const Request& request);
absl::StatusOr<Response> AuditPage(const Context& context, const Request& request);
// What rules and terms mean.
absl::StatusOr<Response> RulesPage(const Context& context, const Request& request);
absl::StatusOr<Response> RulePage(const Context& context, const Request& request);
absl::StatusOr<Response> HelpPage(const Context& context, const Request& request);

}  // namespace assay::web

#endif  // SERVER_WEB_PAGES_PAGES_H_
