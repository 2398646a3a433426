// Tells what block devices read of a set of files, by whatever way: also past the page cache, past
// the file system and by processes that had everything open before. The kernel's tracepoint of each
// request is compared with the blocks of the files.

#ifndef WORKER_AGENT_DEVICE_READS_H_
#define WORKER_AGENT_DEVICE_READS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/file.h"

namespace assay::agent {

// Bytes of one device, counted from its beginning.
struct DeviceRange {
  uint32_t device = 0;  // as the kernel numbers it: major << 20 | minor
  uint64_t begin = 0;
  uint64_t end = 0;
  bool operator==(const DeviceRange&) const = default;
  auto operator<=>(const DeviceRange&) const = default;
};

// Where the files' data lies on their disks, in order and without overlaps. UNIMPLEMENTED for file
// systems and devices that do not tell (btrfs, device mapper, RAID, network), with the reason;
// DEADLINE_EXCEEDED if `budget` is over before all files are known; errno's code. Opens each file.
absl::StatusOr<std::vector<DeviceRange>> RangesOf(const std::vector<std::string>& files,
                                                  absl::Duration budget, const Clock& clock);

// Bytes that `a` and all of `ranges` (as RangesOf has them) have in common.
uint64_t Common(const DeviceRange& a, const std::vector<DeviceRange>& ranges);

// Where the fields of a tracepoint are in a record, by the kernel's text about it.
struct RequestFields {
  size_t device = 0;
  size_t sector = 0;
  size_t sector_count = 0;
  size_t kind = 0;  // letters, R among them: it reads
  size_t kind_bytes = 0;
};
// UNIMPLEMENTED if it is another text than expected.
absl::StatusOr<RequestFields> ParseRequestFormat(absl::string_view format);

// Not thread-safe. Counts from its making to its end.
class DeviceReads {
 public:
  // Only for root. UNAVAILABLE if the kernel has no tracepoints, or gives them to nobody; makes
  // them visible to this process alone, in a mount namespace of its own, where they are not.
  static absl::StatusOr<DeviceReads> Watch(std::vector<DeviceRange> ranges);

  DeviceReads(DeviceReads&&) noexcept;
  DeviceReads& operator=(DeviceReads&&) noexcept;
  ~DeviceReads();

  // Takes in what was noted, for which the kernel has little room. Does not block.
  void Take();
  // Readable, each, when there is much.
  std::vector<int> fds() const;

  // Of the ranges, by what was taken.
  int64_t bytes() const { return bytes_; }
  // The kernel has noted more than it had room for: bytes() may be too few.
  bool has_lost() const { return has_lost_; }

 private:
  struct Ring;
  DeviceReads(std::vector<DeviceRange> ranges, const RequestFields& fields);
  void TakeFrom(Ring* ring);
  void TakeRequest(absl::string_view record);

  std::vector<DeviceRange> ranges_;
  RequestFields fields_;
  std::vector<std::unique_ptr<Ring>> rings_;  // one for each processor
  int64_t bytes_ = 0;
  bool has_lost_ = false;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_DEVICE_READS_H_
