// Copies get their names when they are whole: brought to the device many at a time, where nobody
// shall find them in memory.

#ifndef WORKER_DATA_PLACING_H_
#define WORKER_DATA_PLACING_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/mutex.h"
#include "worker/data/file_copy.h"
#include "worker/data/staging.h"

namespace assay::data {

// A copy under its temporary name.
struct WholeCopy {
  CopiedFile copy;
  std::string temporary_path;
  std::string final_path;
  FileToStage file;
};

// Those in which the job's files lie, below its target. Errno's code.
absl::Status MakeFolders(const StagingJob& job);

// Thread-safe. `job` must outlive it.
class Placing {
 public:
  explicit Placing(const StagingJob& job) : job_(job) {}
  // What has no name by then is removed.
  ~Placing();
  Placing(const Placing&) = delete;
  Placing& operator=(const Placing&) = delete;

  // Writes what `next` gives (WritePieces) as a file of the job, whose size is known, and adds it.
  // DATA_LOSS, behind `from`, which says whose bytes they are: fewer than the job says, or another
  // digest. Then there is no copy.
  absl::Status Write(const FileToStage& file, absl::string_view from, CopyBuffer* buffer,
                     absl::FunctionRef<absl::StatusOr<size_t>(std::span<char> memory)> next);

  // Sooner or later the copy has its name. Errors are those of any copy added so far.
  absl::Status Add(WholeCopy copy);

  // Now all have.
  absl::Status Finish();

 private:
  std::vector<WholeCopy> TakeBatch(size_t least);

  const StagingJob& job_;
  Mutex mutex_;
  std::vector<WholeCopy> batch_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace assay::data

#endif  // WORKER_DATA_PLACING_H_
