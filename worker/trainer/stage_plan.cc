#include "worker/trainer/stage_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/dataset/manifest.h"
#include "common/log.h"
#include "common/status.h"

namespace assay {
namespace {

// With the name alone.
std::vector<data::FileToStage> FilesOfRank(const TrainerSpec& spec, const DataSplit& train,
                                           const DataSplit& validation,
                                           const std::vector<std::string>& shared_files) {
  std::vector<data::FileToStage> files;
  // The ranks of a group that share a node share the copying too.
  const size_t sharers = static_cast<size_t>(spec.group_ranks_per_node());
  for (const DataSplit* split : {&train, &validation}) {
    const std::vector<uint32_t> samples = split->sampler->SamplesToStage();
    for (size_t i = static_cast<size_t>(spec.rank) % sharers; i < samples.size(); i += sharers)
      files.push_back({.name = split->files[samples[i]]});
  }
  if (spec.run.local_rank() == 0) {
    for (const std::string& file : shared_files)
      files.push_back({.name = file});
  }
  return files;
}

absl::Status CheckRegistered(const v1::DatasetSpec& dataset, const dataset::Manifest& manifest) {
  const std::string digest = dataset::DatasetDigest(manifest);
  if (dataset.digest().empty() || dataset.digest() == digest) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "the manifest in ", dataset.path(), " has the digest ", digest, ", but the dataset was ",
      "registered with ", dataset.digest(), ": put it back, or register the dataset anew"));
}

// `files` of the manifest are sorted by path.
absl::Status Describe(const dataset::Manifest& manifest, bool is_digest_wanted,
                      data::FileToStage* file) {
  const auto found = std::lower_bound(
      manifest.files.begin(), manifest.files.end(), file->name,
      [](const dataset::ManifestFile& a, const std::string& path) { return a.path < path; });
  if (found == manifest.files.end() || found->path != file->name)
    return absl::DataLossError(
        absl::StrCat(file->name, " is not in the dataset's manifest: verify the dataset"));
  file->bytes = found->bytes;
  if (is_digest_wanted) file->sha256 = found->sha256;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<data::StagingJob> PlanStaging(const TrainerSpec& spec, const DataSplit& train,
                                             const DataSplit& validation,
                                             const std::vector<std::string>& shared_files) {
  const v1::DatasetSpec& dataset = spec.run.dataset();
  data::StagingJob job = {.source_dir = dataset.path(),
                          .target_dir = spec.run.stage_directory(),
                          .files = FilesOfRank(spec, train, validation, shared_files),
                          .ranks_on_node = std::max(spec.run.ranks_per_node(), 1),
                          // Else the clock would start with the data in memory.
                          .is_cold = !spec.run.is_staging_timed()};
  const absl::StatusOr<dataset::Manifest> manifest = dataset::LoadManifest(dataset.path());
  if (absl::IsNotFound(manifest.status())) {
    LOG(INFO) << "no manifest, so copies are compared by the sizes of their files alone";
    return job;
  }
  RETURN_IF_ERROR(manifest.status());
  RETURN_IF_ERROR(CheckRegistered(dataset, *manifest));
  for (data::FileToStage& file : job.files)
    RETURN_IF_ERROR(Describe(*manifest, job.is_cold, &file));
  return job;
}

}  // namespace assay
