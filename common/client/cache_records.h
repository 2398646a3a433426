// How the caches of a run's nodes were reset, and what proves that they were cold.

#ifndef COMMON_CLIENT_CACHE_RECORDS_H_
#define COMMON_CLIENT_CACHE_RECORDS_H_

#include "absl/status/statusor.h"

#include "assay/v1/resources.pb.h"

#include "common/client/client.h"
#include "common/client/json.h"

namespace assay::client {

// What each node wrote down (caches_N.json of the run's files), with its number as `node`; an empty
// list if the run has no such files. Downloads them. Files that are no JSON are left out.
absl::StatusOr<Json> CachesOf(const Client& client, const v1::Run& run);

}  // namespace assay::client

#endif  // COMMON_CLIENT_CACHE_RECORDS_H_
