// Staging from archives: a dataset whose files lie in tar archives (common/dataset/shards.h).

#ifndef WORKER_DATA_ARCHIVE_STAGING_H_
#define WORKER_DATA_ARCHIVE_STAGING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "common/clock.h"
#include "common/dataset/manifest.h"
#include "common/dataset/parallel.h"
#include "worker/data/staging.h"

namespace assay::data {

// Writes the job's files, which `manifest` lists, from `archives`, names in the shards' folder of
// its source: as many at once as there are processors for this rank. What else they have of the
// manifest is passed over. As StageFiles, but for: INVALID_ARGUMENT, naming archive and member, for
// a member that is not in the manifest, a link, a device, of another size, sparse, or there twice;
// DATA_LOSS for a digest that the job does not have, or an archive that is damaged, if both are so
// when it is read a second time; NOT_FOUND: a file is in none of them. FAILED_PRECONDITION: this
// node cannot decompress it.
absl::StatusOr<Staged> StageArchives(const std::vector<std::string>& archives,
                                     const dataset::Manifest& manifest, const StagingJob& job,
                                     const Clock* clock,
                                     dataset::ProgressCallback progress = nullptr);

}  // namespace assay::data

#endif  // WORKER_DATA_ARCHIVE_STAGING_H_
