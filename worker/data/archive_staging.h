// Staging from archives: a dataset whose files lie in tar archives ("shards"), plain or compressed
// with gzip or zstd, where opening each file is what takes the time.
//
//   <dataset>/manifest.json
//   <dataset>/shards/*.tar, *.tar.gz, *.tgz, *.tar.zst
//
// An archive is written by who knows whom, and nothing that it says is believed: a member is used
// only if it is a regular file of the manifest, of the size and the SHA-256 that stand there.

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

inline constexpr char kShardFolder[] = "shards";

// Paths of the dataset's archives, sorted; empty: its files lie as they are.
absl::StatusOr<std::vector<std::string>> ListShards(const std::string& dataset_dir);

// Writes the job's files, of which `manifest` says size and digest, from the archives, as many
// archives at once as there are processors; what else they have of the manifest is passed over. As
// StageFiles, but for: INVALID_ARGUMENT, naming archive and member, for a member that is not in the
// manifest, a link, a device, of another size, sparse, or there twice; DATA_LOSS for another digest
// or an archive that is damaged; NOT_FOUND: a file is in none of them. FAILED_PRECONDITION: this
// node cannot decompress it.
absl::StatusOr<Staged> StageArchives(const std::vector<std::string>& archives,
                                     const dataset::Manifest& manifest, const StagingJob& job,
                                     const Clock* clock,
                                     dataset::ProgressCallback progress = nullptr);

}  // namespace assay::data

#endif  // WORKER_DATA_ARCHIVE_STAGING_H_
