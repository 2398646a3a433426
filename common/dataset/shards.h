// A dataset that lies in tar archives ("shards"), plain or compressed with gzip or zstd, where
// opening each file is what takes the time.
//
//   <dataset>/manifest.json                                 the dataset's own
//   <dataset>/shards.json                                   which archive has which files
//   <dataset>/shards/*.tar, *.tar.gz, *.tgz, *.tar.zst
//
// An archive is written by who knows whom, and nothing that it says is believed: a member is used
// only if it is a regular file of the manifest, of the size that stands there.

#ifndef COMMON_DATASET_SHARDS_H_
#define COMMON_DATASET_SHARDS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/dataset/layout.h"
#include "common/dataset/manifest.h"
#include "common/dataset/parallel.h"
#include "common/file.h"

struct archive;  // libarchive's

namespace assay::dataset {

inline constexpr absl::string_view kShardIndexName = "shards.json";

// An archive and what of the manifest lies in it.
struct Shard {
  std::string name;                // in kShardFolder
  std::vector<std::string> files;  // paths of the manifest

  friend bool operator==(const Shard&, const Shard&) = default;
};

// Names of the dataset's archives, sorted; empty: its files lie as they are.
absl::StatusOr<std::vector<std::string>> ListShards(const std::string& dir);

std::string ShardPath(const std::string& dir, absl::string_view name);

// A member of an archive that may be a file of the dataset.
struct ShardMember {
  std::string name;  // without "./"
  int64_t bytes = 0;
};

// Reads one archive from its beginning. Not thread-safe. Movable.
class ShardReader {
 public:
  // NOT_FOUND, or errno's code. DATA_LOSS: it is damaged. FAILED_PRECONDITION: this node's
  // libarchive cannot decompress it.
  static absl::StatusOr<ShardReader> Open(const std::string& path);

  // The next member that is neither a directory nor a manifest; nullopt behind the last. What was
  // not read of the one before is passed over. INVALID_ARGUMENT, naming archive and member: a link,
  // a device, a sparse file. DATA_LOSS: it is damaged.
  absl::StatusOr<std::optional<ShardMember>> Next();

  // The next bytes of the member; 0: it has no more. DATA_LOSS.
  absl::StatusOr<size_t> Read(std::span<char> memory);

  // What to say of a member that is not used.
  absl::Status Refused(absl::string_view member, absl::string_view why) const;

  // Gives up the archive's pages in this node's memory.
  void GiveUpPages() const;

 private:
  ShardReader(std::string path, UniqueFd file);
  absl::Status Damaged() const;

  std::string path_;
  UniqueFd file_;
  std::unique_ptr<archive, int (*)(archive*)> archive_;
};

// Reads every archive in `dir`, several at once, and compares every member with the manifest: its
// name, its size, its SHA-256, each there once. Returns what lies where. Blocks. INVALID_ARGUMENT
// and DATA_LOSS, naming archive and member; NOT_FOUND: there are no archives, or they lack a file.
absl::StatusOr<std::vector<Shard>> ReadShards(const std::string& dir, const Manifest& manifest,
                                              int threads, ProgressCallback progress = nullptr);

// Writes <dir>/shards.json atomically. `digest` is the dataset's.
absl::Status SaveShardIndex(const std::string& dir, absl::string_view digest,
                            const std::vector<Shard>& shards);

// Reads it; opens no archive. NOT_FOUND if there is none; DATA_LOSS: it is damaged, or of another
// dataset than the one with this digest. Both say what makes it anew.
absl::StatusOr<std::vector<Shard>> LoadShardIndex(const std::string& dir, absl::string_view digest);

// As ListSamples, by the manifest of a dataset whose files lie in archives: the first `count`.
// FAILED_PRECONDITION if there are fewer.
absl::StatusOr<std::vector<std::string>> ListSamplesOf(const Manifest& manifest, Split split,
                                                       int64_t count, absl::string_view suffix);

}  // namespace assay::dataset

#endif  // COMMON_DATASET_SHARDS_H_
