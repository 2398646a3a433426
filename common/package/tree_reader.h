// Reads the files of a directory tree that somebody else made, and trusts nothing in it: links that
// leave the tree, pipes, devices and files beyond a limit are refused, not followed or read.

#ifndef COMMON_PACKAGE_TREE_READER_H_
#define COMMON_PACKAGE_TREE_READER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace assay::package {

// What a path is, after following links as long as they stay in the tree.
enum class PathKind {
  kMissing,
  kFile,
  kDirectory,
  kBrokenLink,   // leads nowhere, or round in a circle
  kOutsideLink,  // leads out of the tree
  kOther,        // a pipe, a socket, a device
};

// In words, to go after "is ": "a link that leaves the tree".
absl::string_view Describe(PathKind kind);

// Immutable, so safe to share between threads.
class TreeReader {
 public:
  // NOT_FOUND if `root` is no directory.
  static absl::StatusOr<TreeReader> Open(const std::string& root);

  PathKind KindOf(const std::string& path) const;
  bool IsDirectory(const std::string& path) const { return KindOf(path) == PathKind::kDirectory; }
  // The same, but not through a link: what a walk may enter without going in circles.
  bool IsRealDirectory(const std::string& path) const;

  // The content of a file of at most `bytes_max` bytes. NOT_FOUND if there is nothing,
  // INVALID_ARGUMENT if it is no file of this tree or too large, else an errno code.
  absl::StatusOr<std::string> Read(const std::string& path, int64_t bytes_max) const;

 private:
  explicit TreeReader(std::string canonical_root) : root_(std::move(canonical_root)) {}

  std::string root_;  // without links
};

}  // namespace assay::package

#endif  // COMMON_PACKAGE_TREE_READER_H_
