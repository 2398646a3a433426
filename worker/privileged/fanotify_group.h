// What tells who opens or reads the files of a dataset; only for who may (CAP_SYS_ADMIN).

#ifndef WORKER_PRIVILEGED_FANOTIFY_GROUP_H_
#define WORKER_PRIVILEGED_FANOTIFY_GROUP_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/file.h"

namespace assay::privileged {

// `roots` and every directory below them, at most 100,000. NOT_FOUND and others: the one that
// cannot be listed.
absl::StatusOr<std::vector<std::string>> WithChildren(const std::vector<std::string>& roots);

// What errno says after a watch was refused: RESOURCE_EXHAUSTED if the kernel has none left, else
// UNAVAILABLE.
absl::Status WatchError(const std::string& path);

// What may be watched, by its path without links.
using MayWatch = std::function<absl::Status(const std::string& real_path)>;

// A fanotify descriptor, which does not block, of what happens to files in `directories`. With
// `is_read_only` opening a file does not count, reading it does. As WatchError, and what
// `may_watch` says of a directory that is open already, so that nobody can put another in its
// place.
absl::StatusOr<UniqueFd> OpenFanotify(const std::vector<std::string>& directories,
                                      bool is_read_only, const MayWatch& may_watch);

}  // namespace assay::privileged

#endif  // WORKER_PRIVILEGED_FANOTIFY_GROUP_H_
