// How much of a set of files is in this node's memory.

#ifndef WORKER_AGENT_RESIDENCY_H_
#define WORKER_AGENT_RESIDENCY_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/clock.h"

namespace assay::agent {

struct PageCounts {
  int64_t resident = 0;
  int64_t unwritten = 0;  // of them: changed, or just being written: on no device yet
};

// Of an open file. By cachestat(2) where the kernel has it (6.5) and no filter of calls forbids it
// (a unit's SystemCallFilter), else by mincore(2), which does
// not know what is unwritten. PERMISSION_DENIED if the kernel tells this process nothing: of a file
// that it neither owns nor may write cachestat refuses to speak, and mincore would call all pages
// resident, so it is not asked. Otherwise errno's code. Thread-safe.
absl::StatusOr<PageCounts> CountPages(int fd);
absl::StatusOr<PageCounts> CountPagesByMincore(int fd);

struct ResidencyOptions {
  uint64_t seed = 0;                          // of the order in which files are drawn
  int64_t all_max = 65'536;                   // of more files than that a sample is looked at
  int64_t sample_count = 4'096;               // so many of them
  absl::Duration budget = absl::Seconds(30);  // then what was looked at is the sample
  std::function<absl::StatusOr<PageCounts>(int fd)> count = CountPages;
};

struct ResidentFile {
  std::string path;
  int64_t pages = 0;
  dev_t device = 0;
  ino_t inode = 0;
};

// What the files below a root take on storage, by those that were looked at.
struct RootSize {
  int64_t file_count = 0;       // all that there are
  int64_t seen_files = 0;       // looked at
  int64_t seen_bytes = 0;       // of them on storage: neither holes nor a second name of a file
  int64_t elsewhere_count = 0;  // of them on another file system than the root
  int64_t EstimatedBytes() const;
};

struct Residency {
  uint64_t seed = 0;
  int64_t file_count = 0;  // all that there are
  int64_t checked_files = 0;
  int64_t checked_bytes = 0;
  int64_t untold_files = 0;     // of which the kernel tells this process nothing; not checked
  std::string untold;           // why: of the first of them
  PageCounts pages;             // of what was checked
  std::vector<RootSize> roots;  // in the order that they were asked for
  std::vector<ResidentFile> resident;  // the first kResidentFilesMax, those with most pages first

  bool is_sample() const { return checked_files + untold_files < file_count; }
  // Of all files, from those that were looked at.
  int64_t EstimatedBytes() const;
};
inline constexpr size_t kResidentFilesMax = 4'096;

// The regular files below `roots`, in no order. NOT_FOUND, or errno's code, if one of them cannot
// be listed.
absl::StatusOr<std::vector<std::string>> ListFilesBelow(const std::vector<std::string>& roots);

// Opens what it looks at and reads none of it. Files that vanish meanwhile do not count. NOT_FOUND,
// or errno's code, if one of `roots` cannot be listed. Blocks.
absl::StatusOr<Residency> MeasureResidency(const std::vector<std::string>& roots,
                                           const ResidencyOptions& options, const Clock& clock);

// What a sample can have missed, as a sentence; empty if nothing.
std::string Confidence(const Residency& residency);

}  // namespace assay::agent

#endif  // WORKER_AGENT_RESIDENCY_H_
