#include "common/dataset/pack.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/dataset/layout.h"
#include "common/dataset/manifest.h"
#include "common/dataset/shards.h"
#include "common/file.h"
#include "common/sha256.h"
#include "common/status.h"

namespace assay::dataset {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{4} << 30;
constexpr int kReadable = 0644;

using Writer = std::unique_ptr<archive, int (*)(archive*)>;
using Entry = std::unique_ptr<archive_entry, void (*)(archive_entry*)>;

absl::Status Failed(archive* to, const std::string& path) {
  const char* const why = archive_error_string(to);
  return absl::InternalError(
      absl::StrCat("cannot write ", path, ": ", why == nullptr ? "unknown" : why));
}

absl::string_view SuffixOf(ShardCodec codec) {
  switch (codec) {
    case ShardCodec::kGzip:
      return ".tar.gz";
    case ShardCodec::kZstd:
      return ".tar.zst";
    case ShardCodec::kNone:
      break;
  }
  return ".tar";
}

int FilterOf(ShardCodec codec) {
  switch (codec) {
    case ShardCodec::kGzip:
      return ARCHIVE_FILTER_GZIP;
    case ShardCodec::kZstd:
      return ARCHIVE_FILTER_ZSTD;
    case ShardCodec::kNone:
      break;
  }
  return ARCHIVE_FILTER_NONE;
}

struct Placed {
  const ManifestFile* file = nullptr;
  int group = 0;  // only with its like in an archive
};

// In the order in which they are packed: with one part the manifest's.
std::vector<Placed> Order(const Manifest& manifest, int parts) {
  std::vector<Placed> files;
  int64_t train = 0;
  int64_t validation = 0;
  for (const ManifestFile& file : manifest.files) {
    Placed placed{.file = &file};
    if (parts > 1 && absl::StartsWith(file.path, absl::StrCat(SplitName(Split::kTrain), "/")))
      placed.group = 1 + static_cast<int>(train++ % parts);
    if (parts > 1 && absl::StartsWith(file.path, absl::StrCat(SplitName(Split::kValidation), "/")))
      placed.group = 1 + parts + static_cast<int>(validation++ % parts);
    files.push_back(placed);
  }
  std::stable_sort(files.begin(), files.end(),
                   [](const Placed& a, const Placed& b) { return a.group < b.group; });
  return files;
}

// Neighbours of one group, together not more than `bytes`, or one.
std::vector<std::span<const Placed>> Divide(std::span<const Placed> files, int64_t bytes) {
  std::vector<std::span<const Placed>> shards;
  size_t begin = 0;
  int64_t sum = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    const bool is_full = sum + files[i].file->bytes > bytes;
    if (i > begin && (is_full || files[i].group != files[begin].group)) {
      shards.push_back(files.subspan(begin, i - begin));
      begin = i;
      sum = 0;
    }
    sum += files[i].file->bytes;
  }
  if (begin < files.size()) shards.push_back(files.subspan(begin));
  return shards;
}

absl::Status WriteMember(archive* to, const std::string& dir, const ManifestFile& file,
                         const std::string& shard) {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(JoinPath(dir, file.path), kMaxFileBytes));
  if (Sha256Hex(content) != file.sha256)
    return absl::DataLossError(absl::StrCat(JoinPath(dir, file.path),
                                            " is not what the manifest says: verify the dataset"));
  const Entry entry(archive_entry_new(), archive_entry_free);
  archive_entry_set_pathname(entry.get(), file.path.c_str());
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), kReadable);
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(content.size()));
  archive_entry_set_mtime(entry.get(), 0, 0);
  if (archive_write_header(to, entry.get()) != ARCHIVE_OK ||
      archive_write_data(to, content.data(), content.size()) !=
          static_cast<la_ssize_t>(content.size()))
    return Failed(to, shard);
  return absl::OkStatus();
}

absl::Status WriteShard(const std::string& dir, std::span<const Placed> files, ShardCodec codec,
                        const std::string& path, ProgressMeter* meter) {
  const Writer to(archive_write_new(), archive_write_free);
  if (archive_write_set_format_pax_restricted(to.get()) != ARCHIVE_OK ||
      archive_write_add_filter(to.get(), FilterOf(codec)) != ARCHIVE_OK ||
      archive_write_open_filename(to.get(), path.c_str()) != ARCHIVE_OK)
    return Failed(to.get(), path);
  for (const Placed& placed : files) {
    RETURN_IF_ERROR(WriteMember(to.get(), dir, *placed.file, path));
    meter->AddFile(placed.file->bytes);
  }
  return archive_write_close(to.get()) == ARCHIVE_OK ? absl::OkStatus() : Failed(to.get(), path);
}

}  // namespace

absl::StatusOr<Packed> PackDataset(const std::string& dir, const std::string& target,
                                   const PackOptions& options, ProgressCallback progress) {
  ASSIGN_OR_RETURN(const Manifest manifest, LoadManifest(dir));
  const std::string folder = JoinPath(target, kShardFolder);
  RETURN_IF_ERROR(MakeDirectories(folder));
  ASSIGN_OR_RETURN(const std::vector<std::string> there, ListDirectory(folder));
  if (!there.empty())
    return absl::AlreadyExistsError(
        absl::StrCat(folder, " is not empty: name another place, or remove it"));
  const std::vector<Placed> files = Order(manifest, options.parts);
  const std::vector<std::span<const Placed>> shards = Divide(files, options.shard_bytes);
  std::vector<Shard> index(shards.size());
  std::vector<int64_t> sizes(shards.size());
  ProgressMeter meter(std::ssize(manifest.files), std::move(progress));
  const auto write = [&](int, int64_t i) -> absl::Status {
    const auto at = static_cast<size_t>(i);
    index[at].name = absl::StrFormat("%05d%s", i, SuffixOf(options.codec));
    for (const Placed& placed : shards[at])
      index[at].files.push_back(placed.file->path);
    const std::string path = JoinPath(folder, index[at].name);
    RETURN_IF_ERROR(WriteShard(dir, shards[at], options.codec, path, &meter));
    ASSIGN_OR_RETURN(sizes[at], FileSize(path));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ForEachIndex(std::ssize(shards), options.threads, write));
  RETURN_IF_ERROR(SaveShardIndex(target, DatasetDigest(manifest), index));
  RETURN_IF_ERROR(SaveManifest(target, manifest));
  Packed packed{.shards = std::ssize(shards), .bytes_before = TotalBytes(manifest)};
  for (const int64_t size : sizes)
    packed.bytes_after += size;
  return packed;
}

}  // namespace assay::dataset
