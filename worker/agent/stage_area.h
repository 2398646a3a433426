// Where a run's node keeps what is staged for it: made before the run, with what the node's cache
// has of the dataset (worker/cache) where the round lets staging be off the clock; emptied after
// it.

#ifndef WORKER_AGENT_STAGE_AREA_H_
#define WORKER_AGENT_STAGE_AREA_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "assay/v1/config.pb.h"
#include "assay/v1/run_spec.pb.h"

#include "common/clock.h"
#include "common/json_value.h"
#include "worker/agent/account.h"
#include "worker/cache/cache_link.h"
#include "worker/cache/node_cache.h"

namespace assay::agent {

// Where this node's cache has the files of the run's dataset; empty: the node has none, or the run
// may not start from one, because its staging is timed or it stages nothing.
std::string CachedFilesOf(const v1::RunSpec& spec, const v1::WorkerConfig& worker);

// The cache of this node's configuration, whose datasets ranks of `user` may read.
// FAILED_PRECONDITION if it names none; otherwise as NodeCache::Open.
absl::StatusOr<cache::NodeCache> OpenNodeCache(const v1::WorkerConfig& worker,
                                               const std::optional<Account>& user);

struct StageAreaOptions {
  std::string path;                         // of the run's own directory
  std::string parent;                       // stage_directory
  std::vector<std::string> sample_folders;  // below it
  std::optional<Account> user;              // of ranks; none: ours
  std::optional<Account> step_user;         // of the step once these have started
};

// Not thread-safe. What it has of the cache stays there as long as this lives.
class StageArea {
 public:
  explicit StageArea(StageAreaOptions options) : options_(std::move(options)) {}

  // Makes it, with what the cache has of `spec`'s dataset where CachedFilesOf names a place, and
  // then lets ranks write there: nobody else can have changed what it holds by then. What goes
  // wrong with the cache is logged, and then the area is empty: ranks copy all of it. CANCELLED:
  // stopped. Blocks.
  absl::Status Make(const v1::RunSpec& spec, const v1::WorkerConfig& worker,
                    const std::function<bool()>& is_stopped, const Clock& clock);

  // What of it came from the cache, for people; null: nothing.
  JsonValue FromCache() const;

  // The next run may need the room before this one is forgotten. What is left by then, such as the
  // directory itself where that is not the step's to remove, the agent removes.
  void Empty() const;

 private:
  absl::Status MakeEmpty() const;
  absl::Status Share() const;
  absl::Status Link(const v1::RunSpec& spec, const v1::WorkerConfig& worker,
                    const std::function<bool()>& is_stopped, const Clock& clock);

  const StageAreaOptions options_;
  std::optional<cache::Lease> lease_;
  std::optional<cache::Linked> linked_;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_STAGE_AREA_H_
