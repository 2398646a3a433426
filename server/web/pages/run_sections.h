// The sections of a run's page that its nodes' records fill.

#ifndef SERVER_WEB_PAGES_RUN_SECTIONS_H_
#define SERVER_WEB_PAGES_RUN_SECTIONS_H_

#include "assay/v1/resources.pb.h"

#include "server/web/frame.h"
#include "server/web/page.h"

namespace assay::web {

// First touch, caches, bytes, telemetry and profile, as far as the run has left them and the
// visitor may see them; members of the same names are added to the page's JSON. Blocks.
void AddRunRecords(const Context& context, const v1::Run& run, PageView* view);

}  // namespace assay::web

#endif  // SERVER_WEB_PAGES_RUN_SECTIONS_H_
