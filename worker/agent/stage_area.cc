#include "worker/agent/stage_area.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/log.h"
#include "common/status.h"
#include "worker/agent/cold_start.h"

namespace assay::agent {
namespace {

constexpr int64_t kGB = 1'000'000'000;

}  // namespace

std::string CachedFilesOf(const v1::RunSpec& spec, const v1::WorkerConfig& worker) {
  const v1::DatasetSpec& dataset = spec.dataset();
  const bool may_start_from_one =
      dataset.is_staged() && !spec.is_staging_timed() && !dataset.digest().empty();
  if (!may_start_from_one || worker.node_cache().directory().empty()) return "";
  return cache::NodeCache::FilesPath(worker.node_cache().directory(), dataset.digest());
}

absl::StatusOr<cache::NodeCache> OpenNodeCache(const v1::WorkerConfig& worker,
                                               const std::optional<Account>& user) {
  if (worker.node_cache().directory().empty())
    return absl::FailedPreconditionError(
        "this node has no cache: node_cache of its agent's configuration names none");
  cache::NodeCacheOptions options{.directory = worker.node_cache().directory(),
                                  .quota_bytes = worker.node_cache().quota_gb() * kGB};
  if (user.has_value()) options.readers = user->gid;
  return cache::NodeCache::Open(std::move(options));
}

// For this account alone.
absl::Status StageArea::MakeEmpty() const {
  if (!FileExists(options_.parent)) {
    RETURN_IF_ERROR(MakeDirectories(options_.parent));
    RETURN_IF_ERROR(GrantPassage(options_.parent, options_.user));
  }
  RETURN_IF_ERROR(RemoveTree(options_.path));
  for (const std::string& folder : options_.sample_folders)
    RETURN_IF_ERROR(MakeDirectories(folder, kPrivateDirectory));
  return absl::OkStatus();
}

absl::Status StageArea::Share() const {
  std::vector<std::string> folders = options_.sample_folders;
  if (linked_.has_value())
    for (const std::string& folder : linked_->folders)
      folders.push_back(JoinPath(options_.path, folder));
  folders.push_back(options_.path);
  for (const std::string& folder : folders)
    RETURN_IF_ERROR(ShareBetween(options_.step_user, options_.user, folder));
  return absl::OkStatus();
}

absl::Status StageArea::Link(const v1::RunSpec& spec, const v1::WorkerConfig& worker,
                             const std::function<bool()>& is_stopped, const Clock& clock) {
  ASSIGN_OR_RETURN(cache::NodeCache cache, OpenNodeCache(worker, options_.user));
  ASSIGN_OR_RETURN(lease_, cache.Hold(spec.dataset().digest()));
  ASSIGN_OR_RETURN(
      linked_,
      LinkDataset(*lease_,
                  {.target_dir = options_.path, .seed = RandomSeed(), .is_stopped = is_stopped},
                  clock));
  return absl::OkStatus();
}

absl::Status StageArea::Make(const v1::RunSpec& spec, const v1::WorkerConfig& worker,
                             const std::function<bool()>& is_stopped, const Clock& clock) {
  RETURN_IF_ERROR(MakeEmpty());
  if (CachedFilesOf(spec, worker).empty()) return Share();
  const absl::Status status = Link(spec, worker, is_stopped, clock);
  if (absl::IsCancelled(status)) return status;
  if (!status.ok()) {
    LOG(WARNING) << "nothing of the node cache is used: " << status;
    linked_.reset();
    lease_.reset();
    RETURN_IF_ERROR(MakeEmpty());
    return Share();
  }
  LOG(INFO) << "from the node cache files=" << linked_->files << " bytes=" << linked_->bytes
            << " checked_files=" << linked_->checked_files << " seed=" << linked_->seed
            << " damaged=" << linked_->damaged.size();
  return Share();
}

JsonValue StageArea::FromCache() const {
  if (!linked_.has_value()) return {};
  JsonList damaged;
  for (const std::string& name : linked_->damaged)
    damaged.emplace_back(name);
  return JsonValue(JsonObject{{"files", JsonValue(linked_->files)},
                              {"bytes", JsonValue(linked_->bytes)},
                              {"checked_files", JsonValue(linked_->checked_files)},
                              {"seed", JsonValue(absl::StrCat(linked_->seed))},
                              {"damaged", JsonValue(std::move(damaged))}});
}

void StageArea::Empty() const {
  for (const std::string& folder : options_.sample_folders) {
    const absl::Status status = RemoveTree(folder);
    if (!status.ok()) LOG(WARNING) << status;
  }
  rmdir(options_.path.c_str());
}

}  // namespace assay::agent
