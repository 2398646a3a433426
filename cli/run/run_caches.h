// How the caches of a run's nodes were reset, and what proves that they were cold.

#ifndef CLI_RUN_RUN_CACHES_H_
#define CLI_RUN_RUN_CACHES_H_

#include "absl/status/statusor.h"

#include "assay/v1/resources.pb.h"

#include "cli/terminal/print.h"
#include "common/client/client.h"

namespace assay::cli {

// What each node wrote down (caches_N.json of the run's files), with its number as `node`; an empty
// list if the run has no such files. Downloads them. Files that are no JSON are left out.
absl::StatusOr<Json> CachesOf(const client::Client& client, const v1::Run& run);

// Makes it a member of the run, with a table and, as another, what is to be known besides.
void AddCaches(Json caches, ShowView* view);

}  // namespace assay::cli

#endif  // CLI_RUN_RUN_CACHES_H_
