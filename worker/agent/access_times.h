// What files' times of access say: that they had been read by a way that no watch of their folders
// sees, such as under another name. No privilege is needed, and nothing is read.

#ifndef WORKER_AGENT_ACCESS_TIMES_H_
#define WORKER_AGENT_ACCESS_TIMES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "common/clock.h"

namespace assay::agent {

// Not thread-safe.
class AccessTimes {
 public:
  static constexpr size_t kFilesMax = 512;
  static constexpr absl::Duration kBudget = absl::Seconds(2);
  static constexpr absl::Duration kReadBudget = absl::Milliseconds(30);

  // Looks at kFilesMax files below `roots`, drawn at random by `seed`, for kBudget at most, and
  // keeps those whose time of access the next read changes: on a mount with `relatime` those that
  // were written since they were last read, or were read a day ago; with `noatime` none. Their
  // inodes stay in memory. Errors of ListFilesBelow. Blocks.
  static absl::StatusOr<AccessTimes> Take(const std::vector<std::string>& roots, uint64_t seed,
                                          const Clock& clock);

  size_t file_count() const { return files_.size(); }

  struct Count {
    size_t read = 0;
    size_t looked_at = 0;

    friend bool operator==(const Count&, const Count&) = default;
  };
  // How many of them have been read since, and before a touch of `path` (which may be none of them)
  // that was heard of at `heard_us`, by the wall clock: news of it may be late, so its own time of
  // access counts where that has changed. The kernel's times are of its last tick, so what is less
  // than 20 ms before does not count. Looks for kReadBudget at most, since the stamps of the log's
  // lines wait meanwhile. Blocks.
  Count ReadBefore(absl::string_view path, int64_t heard_us, const Clock& clock) const;

 private:
  struct File {
    std::string path;
    int64_t accessed_us = 0;
  };
  int64_t taken_us_ = 0;
  std::vector<File> files_;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_ACCESS_TIMES_H_
