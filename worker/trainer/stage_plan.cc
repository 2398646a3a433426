#include "worker/trainer/stage_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/dataset/manifest.h"
#include "common/log.h"
#include "common/status.h"
#include "worker/data/archive_staging.h"
#include "worker/trainer/failure.h"

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

// All that the ranks of this node stage, with the name alone.
std::vector<data::FileToStage> FilesOfNode(const DataSplit& train, const DataSplit& validation,
                                           const std::vector<std::string>& shared_files) {
  std::vector<data::FileToStage> files;
  for (const DataSplit* split : {&train, &validation})
    for (const uint32_t sample : split->sampler->NodeSamples())
      files.push_back({.name = split->files[sample]});
  for (const std::string& file : shared_files)
    files.push_back({.name = file});
  return files;
}

// An archive, and what the node needs of it.
struct NodeShard {
  const dataset::Shard* shard = nullptr;
  std::vector<data::FileToStage> files;
  int64_t bytes = 0;  // of the files
};

// Those of which the node needs anything. DATA_LOSS: a file is in none of them.
absl::StatusOr<std::vector<NodeShard>> Needed(const ShardedDataset& sharded,
                                              const std::vector<data::FileToStage>& files) {
  absl::flat_hash_map<absl::string_view, const data::FileToStage*> wanted;
  for (const data::FileToStage& file : files)
    wanted.emplace(file.name, &file);
  std::vector<NodeShard> needed;
  for (const dataset::Shard& shard : sharded.shards) {
    NodeShard one{.shard = &shard};
    for (const std::string& name : shard.files) {
      const auto found = wanted.find(name);
      if (found == wanted.end()) continue;
      one.files.push_back(*found->second);
      one.bytes += found->second->bytes;
      wanted.erase(found);
    }
    if (!one.files.empty()) needed.push_back(std::move(one));
  }
  if (wanted.empty()) return needed;
  return absl::DataLossError(absl::StrCat(wanted.begin()->first, " is in no archive that ",
                                          dataset::kShardIndexName,
                                          " names: 'assay dataset index' makes it anew"));
}

// Deals the archives to the ranks of the node and of those whose ranks are peers of this node's,
// the largest first, each to the one that has least: every rank comes to the same.
void Deal(std::vector<NodeShard> needed, const TrainerSpec& spec, StagePlan* plan) {
  const Peers peers = PeersOf(spec);
  const auto ranks = static_cast<size_t>(std::max(spec.run.ranks_per_node(), 1));
  plan->parts.resize(peers.ranks.size());
  std::stable_sort(needed.begin(), needed.end(),
                   [](const NodeShard& a, const NodeShard& b) { return a.bytes > b.bytes; });
  std::vector<int64_t> load(ranks * peers.ranks.size());  // of all ranks of a node, then the next
  for (NodeShard& one : needed) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += one.bytes;
    const auto reader = static_cast<size_t>(least - load.begin());
    const bool is_here = reader % ranks == static_cast<size_t>(spec.run.local_rank());
    std::vector<data::FileToStage>* const files =
        is_here ? &plan->parts[reader / ranks] : &plan->of_others;
    std::move(one.files.begin(), one.files.end(), std::back_inserter(*files));
    if (is_here && reader / ranks == peers.own) plan->archives.push_back(one.shard->name);
  }
  for (const std::vector<data::FileToStage>& part : plan->parts)
    plan->job.files.insert(plan->job.files.end(), part.begin(), part.end());
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

// The run's, as it was registered.
absl::StatusOr<dataset::Manifest> LoadRegistered(const v1::DatasetSpec& dataset) {
  ASSIGN_OR_RETURN(dataset::Manifest manifest, dataset::LoadManifest(dataset.path()));
  RETURN_IF_ERROR(CheckRegistered(dataset, manifest));
  return manifest;
}

}  // namespace

Peers PeersOf(const TrainerSpec& spec) {
  if (!spec.run.is_staging_timed()) return {.ranks = {spec.rank}};
  const int on_node = spec.group_ranks_per_node();
  const int group_begin = spec.group() * spec.grid.size();
  Peers peers;
  for (int rank = group_begin + (spec.rank - group_begin) % on_node;
       rank < group_begin + spec.grid.size(); rank += on_node) {
    if (rank == spec.rank) peers.own = peers.ranks.size();
    peers.ranks.push_back(rank);
  }
  return peers;
}

absl::StatusOr<std::optional<ShardedDataset>> OpenSharded(const TrainerSpec& spec) {
  const v1::DatasetSpec& dataset = spec.run.dataset();
  ASSIGN_OR_RETURN(const std::vector<std::string> shards, dataset::ListShards(dataset.path()));
  if (shards.empty()) return std::nullopt;
  if (!dataset.is_staged())
    return absl::FailedPreconditionError(
        absl::StrCat(dataset.path(),
                     " holds archives, which nobody trains from: stage them, with "
                     "staging = \"node\", or register the dataset's files"));
  ShardedDataset sharded;
  ASSIGN_OR_RETURN(sharded.manifest, LoadRegistered(dataset));
  ASSIGN_OR_RETURN(sharded.shards, dataset::LoadShardIndex(
                                       dataset.path(), dataset::DatasetDigest(sharded.manifest)));
  return sharded;
}

absl::StatusOr<StagePlan> PlanStaging(const TrainerSpec& spec, const DataSplit& train,
                                      const DataSplit& validation,
                                      const std::vector<std::string>& shared_files,
                                      const ShardedDataset* sharded) {
  const v1::DatasetSpec& dataset = spec.run.dataset();
  StagePlan plan = {.job = {.source_dir = dataset.path(),
                            .target_dir = spec.run.stage_directory(),
                            .ranks_on_node = std::max(spec.run.ranks_per_node(), 1),
                            // Else the clock would start with the data in memory.
                            .is_cold = !spec.run.is_staging_timed()}};
  if (sharded != nullptr) {
    std::vector<data::FileToStage> files = FilesOfNode(train, validation, shared_files);
    for (data::FileToStage& file : files)
      RETURN_IF_ERROR(Describe(sharded->manifest, plan.job.is_cold, &file));
    ASSIGN_OR_RETURN(std::vector<NodeShard> needed, Needed(*sharded, files));
    Deal(std::move(needed), spec, &plan);
    return plan;
  }
  plan.job.files = FilesOfRank(spec, train, validation, shared_files);
  const absl::StatusOr<dataset::Manifest> manifest = LoadRegistered(dataset);
  if (absl::IsNotFound(manifest.status())) {
    LOG(INFO) << "no manifest, so copies are compared by the sizes of their files alone";
    return plan;
  }
  RETURN_IF_ERROR(manifest.status());
  for (data::FileToStage& file : plan.job.files)
    RETURN_IF_ERROR(Describe(*manifest, plan.job.is_cold, &file));
  return plan;
}

data::CachedFiles TakeCached(const std::string& cache_dir, StagePlan* plan) {
  if (!plan->of_others.empty()) {
    data::StagingJob others = {.target_dir = plan->job.target_dir,
                               .files = std::move(plan->of_others)};
    data::TakeCached(cache_dir, &others);
    plan->of_others = std::move(others.files);
  }
  return data::TakeCached(cache_dir, &plan->job);
}

absl::Status CheckStagingSpace(const StagePlan& plan) {
  if (plan.archives.empty() && plan.of_others.empty()) return data::CheckStagingSpace(plan.job);
  data::StagingJob node = {.source_dir = plan.job.source_dir,
                           .target_dir = plan.job.target_dir,
                           .files = plan.job.files};
  node.files.insert(node.files.end(), plan.of_others.begin(), plan.of_others.end());
  return data::CheckStagingSpace(node);
}

absl::StatusOr<data::Staged> StageFromArchives(const std::vector<std::string>& archives,
                                               const data::StagingJob& job,
                                               const dataset::Manifest& manifest,
                                               const Clock* clock,
                                               dataset::ProgressCallback progress) {
  const absl::StatusOr<data::Staged> staged =
      data::StageArchives(archives, manifest, job, clock, std::move(progress));
  const absl::Status& status = staged.status();
  const bool is_data =
      absl::IsDataLoss(status) || absl::IsInvalidArgument(status) || absl::IsNotFound(status);
  return WithExitCode(staged, is_data ? ExitCode::kBadData : ExitCode::kDisk);
}

}  // namespace assay
