#include "common/package/tree_reader.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/status.h"

namespace assay::package {
namespace {

// The path without links; empty with errno set if it leads nowhere.
std::string Canonical(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), std::free);
  return real == nullptr ? "" : std::string(real.get());
}

PathKind KindOfMode(mode_t mode) {
  if (S_ISREG(mode)) return PathKind::kFile;
  return S_ISDIR(mode) ? PathKind::kDirectory : PathKind::kOther;
}

}  // namespace

absl::string_view Describe(PathKind kind) {
  switch (kind) {
    case PathKind::kMissing:
      return "missing";
    case PathKind::kFile:
      return "a file";
    case PathKind::kDirectory:
      return "a folder";
    case PathKind::kBrokenLink:
      return "a link that leads nowhere";
    case PathKind::kOutsideLink:
      return "a link that leaves the tree";
    case PathKind::kOther:
      return "neither a file nor a folder";
  }
  return "unknown";
}

absl::StatusOr<TreeReader> TreeReader::Open(const std::string& root) {
  const std::string canonical = Canonical(root);
  struct stat info = {};
  if (canonical.empty() || stat(canonical.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    return absl::NotFoundError(absl::StrCat("there is no folder ", root));
  return TreeReader(canonical);
}

PathKind TreeReader::KindOf(const std::string& path) const {
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0) return PathKind::kMissing;
  if (!S_ISLNK(info.st_mode)) return KindOfMode(info.st_mode);
  const std::string target = Canonical(path);
  if (target.empty()) return PathKind::kBrokenLink;
  const bool is_inside =
      target == root_ || root_ == "/" || absl::StartsWith(target, absl::StrCat(root_, "/"));
  if (!is_inside) return PathKind::kOutsideLink;
  return stat(target.c_str(), &info) == 0 ? KindOfMode(info.st_mode) : PathKind::kBrokenLink;
}

bool TreeReader::IsRealDirectory(const std::string& path) const {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

absl::StatusOr<std::string> TreeReader::Read(const std::string& path, int64_t bytes_max) const {
  const PathKind kind = KindOf(path);
  if (kind == PathKind::kMissing) return absl::NotFoundError(absl::StrCat("there is no ", path));
  if (kind != PathKind::kFile)
    return absl::InvalidArgumentError(absl::StrCat(path, " is ", Describe(kind)));
  return ReadFile(path, bytes_max);
}

}  // namespace assay::package
