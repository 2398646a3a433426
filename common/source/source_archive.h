// The source of a program that a submission brings: a folder as one file whose bytes depend on the
// folder's content alone, and that file as a folder again.

#ifndef COMMON_SOURCE_SOURCE_ARCHIVE_H_
#define COMMON_SOURCE_SOURCE_ARCHIVE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace assay {

// Of the archive, and of the files in it together.
inline constexpr int64_t kSourceBytesMax = int64_t{64} << 20;
inline constexpr size_t kSourceFilesMax = 20'000;  // files and folders

// A tar archive of all files below `folder`: sorted by path, of nobody, of no time; of permissions
// whether its owner may execute a file, which is all that does not depend on who made it how. Left
// out are what Git and Python keep for themselves: folders `.git` and
// `__pycache__`. NOT_FOUND if there is no such folder; INVALID_ARGUMENT, naming the path, for a
// symbolic link or a device, for a folder without a file, and beyond the limits above.
absl::StatusOr<std::string> PackSource(const std::string& folder);

// Unpacks the archive at `archive_path` into `folder`, which is made and must not exist: folders
// that everybody may list, files that everybody may read and nobody may write, executable where
// they were. Nothing is ever written outside of it. INVALID_ARGUMENT for what PackSource does not
// make: other formats, links, absolute paths or "..", more than the limits above; what was unpacked
// by then stays.
absl::Status UnpackSource(const std::string& archive_path, const std::string& folder);

}  // namespace assay

#endif  // COMMON_SOURCE_SOURCE_ARCHIVE_H_
