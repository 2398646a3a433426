// What everything that is kept takes of the disk.

#ifndef SERVER_STORE_USAGE_H_
#define SERVER_STORE_USAGE_H_

#include <string>

#include "absl/status/statusor.h"

#include "server/core/query.h"

namespace assay::store {

// By kind, the largest first; kinds of which there is nothing are left out. Artifacts are those
// that the database names, each once and of the first kind that it has, as large as they are on the
// disk. Reads beside a daemon that writes.
absl::StatusOr<core::StoreUsage> MeasureUsage(const std::string& data_directory);

}  // namespace assay::store

#endif  // SERVER_STORE_USAGE_H_
