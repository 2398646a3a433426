// What of the files of runs a policy allows to remove, and its removal.

#ifndef SERVER_STORE_PRUNE_H_
#define SERVER_STORE_PRUNE_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/core/upkeep.h"

namespace assay::store {

class Db;

// Of submissions that had ended by then; 0: nothing of the kind.
struct PruneLimits {
  int64_t telemetry_ended_us = 0;
  int64_t progress_ended_us = 0;
};

// Goes through the artifacts in steps, beside a daemon that writes. Bytes that anything else holds,
// too, stay. Not thread-safe, but may move between threads.
class Pruning {
 public:
  // NOT_FOUND if there is no database.
  static absl::StatusOr<std::unique_ptr<Pruning>> Open(const std::string& data_directory,
                                                       const PruneLimits& limits);
  ~Pruning();
  Pruning(const Pruning&) = delete;
  Pruning& operator=(const Pruning&) = delete;

  // Looks at a page of artifacts: what of it may go, and is still there.
  absl::StatusOr<std::vector<core::PrunableFiles>> Step();
  bool is_done() const;

  // Removes the files, of which an ArtifactsPruned is committed. One that something else has come
  // to hold stays.
  absl::Status Remove(const std::vector<core::PrunedArtifact>& artifacts);

 private:
  struct Work;
  explicit Pruning(std::unique_ptr<Work> work);
  const std::unique_ptr<Work> work_;
};

// The digests of all artifacts that were pruned, by the log of events: their files need not be
// there.
absl::StatusOr<std::set<std::string>> ReadPruned(Db* db);

}  // namespace assay::store

#endif  // SERVER_STORE_PRUNE_H_
