// The pages of the site, a row for each.

#include "server/web/page.h"
#include "server/web/pages/pages.h"

namespace assay::web {

std::span<const Route> Routes() {
  static constexpr Route kRoutes[] = {
      {.pattern = "/", .page = HomePage},
      {.pattern = "/rounds/{round}", .page = RoundPage},
      {.pattern = "/rounds/{round}/results", .page = ResultsPage},
      {.pattern = "/entries/{entry}", .page = EntryPage},
      {.pattern = "/entries/{entry}/digest", .page = EntryDigestPage},
      {.pattern = "/runs/{run}", .page = RunPage},
      {.pattern = "/runs/{run}/log", .page = RunLogPage},
      {.pattern = "/runs/{run}/live", .page = RunLivePage},
      {.pattern = "/runs/{run}/files/{file}", .page = RunFilePage},
      {.pattern = "/compare", .page = ComparePage},
      {.pattern = "/scaling", .page = ScalingPage},
      {.pattern = "/history", .page = HistoryPage},
      {.pattern = "/query", .page = QueryPage, .takes_post = true},
      {.pattern = "/fleet", .page = FleetPage},
      {.pattern = "/audit", .page = AuditPage},
      {.pattern = "/rules", .page = RulesPage},
      {.pattern = "/rules/{rule}", .page = RulePage},
      {.pattern = "/help", .page = HelpPage},
  };
  return kRoutes;
}

}  // namespace assay::web
