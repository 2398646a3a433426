// How the caches of a run's nodes were reset, and what proves that they were cold.

#ifndef CLI_RUN_RUN_CACHES_H_
#define CLI_RUN_RUN_CACHES_H_

#include "cli/terminal/print.h"
#include "common/client/cache_records.h"

namespace assay::cli {

using client::CachesOf;

// Makes it a member of the run, with a table and, as another, what is to be known besides.
void AddCaches(Json caches, ShowView* view);

}  // namespace assay::cli

#endif  // CLI_RUN_RUN_CACHES_H_
