#include "common/dataset/shards.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"

#include "common/json_document.h"
#include "common/mutex.h"
#include "common/sha256.h"
#include "common/status.h"

namespace assay::dataset {
namespace {

using Json = nlohmann::json;

constexpr absl::string_view kSuffixes[] = {".tar", ".tar.gz", ".tgz", ".tar.zst"};
constexpr char kFormat[] = "assay-shards-1";
constexpr size_t kReadBytes = size_t{1} << 20;

// What speaks against a member whatever the manifest says; empty: nothing.
std::string WhyStrange(archive_entry* entry) {
  if (archive_entry_hardlink(entry) != nullptr) return "is a hard link";
  switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
      break;
    case AE_IFLNK:
      return "is a symbolic link";
    case AE_IFDIR:
      return archive_entry_size(entry) == 0 ? "" : "is a directory with content";
    default:
      return "is a device, a pipe or a socket";
  }
  if (archive_entry_sparse_count(entry) > 0) return "is sparse";
  return "";
}

// Compares members of all archives with the manifest. Thread-safe.
class MemberCheck {
 public:
  MemberCheck(const Manifest& manifest, ProgressCallback progress)
      : meter_(std::ssize(manifest.files), std::move(progress)) {
    for (const ManifestFile& file : manifest.files)
      files_.emplace(file.path, Listed{&file});
  }

  // One archive; returns its members in order.
  absl::StatusOr<std::vector<std::string>> Read(const std::string& path) {
    ASSIGN_OR_RETURN(ShardReader reader, ShardReader::Open(path));
    std::vector<std::string> names;
    std::vector<char> memory(kReadBytes);
    for (;;) {
      ASSIGN_OR_RETURN(const std::optional<ShardMember> member, reader.Next());
      if (!member.has_value()) break;
      ASSIGN_OR_RETURN(const ManifestFile* const file, Find(reader, *member));
      Sha256 digest;
      for (size_t n = 1; n > 0;) {
        ASSIGN_OR_RETURN(n, reader.Read(memory));
        digest.Add(absl::string_view(memory.data(), n));
      }
      if (digest.HexDigest() != file->sha256)
        return absl::DataLossError(absl::StrCat(path, ": the SHA-256 of its member \"", file->path,
                                                "\" is not the manifest's"));
      names.push_back(file->path);
      meter_.AddFile(file->bytes);
    }
    reader.GiveUpPages();
    return names;
  }

  // NOT_FOUND: a file of the manifest was in no archive.
  absl::Status Finish() {
    MutexLock lock(&mutex_);
    for (const auto& [path, listed] : files_)
      if (!listed.is_seen)
        return absl::NotFoundError(
            absl::StrCat(path, " is in none of the archives: make them anew"));
    return absl::OkStatus();
  }

 private:
  struct Listed {
    const ManifestFile* file = nullptr;
    bool is_seen = false;
  };

  absl::StatusOr<const ManifestFile*> Find(const ShardReader& reader, const ShardMember& member) {
    MutexLock lock(&mutex_);
    const auto found = files_.find(member.name);
    if (found == files_.end())
      return reader.Refused(member.name, "is not in the dataset's manifest");
    const ManifestFile* const file = found->second.file;
    if (file->bytes != member.bytes)
      return reader.Refused(
          member.name,
          absl::StrCat("has ", member.bytes, " bytes, but the manifest says ", file->bytes));
    if (std::exchange(found->second.is_seen, true))
      return reader.Refused(member.name, "is there twice");
    return file;
  }

  ProgressMeter meter_;
  Mutex mutex_;
  absl::flat_hash_map<absl::string_view, Listed> files_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<Shard> ParseShard(const Json& json) {
  const absl::Status damaged = absl::DataLossError("an archive has no name and list of files");
  if (!json.is_object()) return damaged;
  const auto name = json.find("name");
  const auto files = json.find("files");
  if (name == json.end() || files == json.end() || !name->is_string() || !files->is_array())
    return damaged;
  Shard shard{.name = name->get<std::string>()};
  if (shard.name.empty() || absl::StrContains(shard.name, '/'))
    return absl::DataLossError(
        absl::StrCat("\"", shard.name, "\" is no name of a file in ", kShardFolder));
  for (const Json& file : *files) {
    if (!file.is_string()) return damaged;
    shard.files.push_back(file.get<std::string>());
  }
  return shard;
}

absl::StatusOr<std::vector<Shard>> ParseIndex(absl::string_view text, absl::string_view digest) {
  const Json json = ParseJsonDocument<Json>(text);
  if (!json.is_object() || json.value("format", Json()) != kFormat)
    return absl::DataLossError(absl::StrCat("not a JSON object of the format \"", kFormat, "\""));
  if (json.value("dataset", Json()) != std::string(digest))
    return absl::DataLossError("it is of another dataset than the manifest beside it");
  const auto list = json.find("shards");
  if (list == json.end() || !list->is_array())
    return absl::DataLossError("\"shards\" is not a list");
  std::vector<Shard> shards;
  for (const Json& one : *list) {
    ASSIGN_OR_RETURN(Shard shard, ParseShard(one));
    shards.push_back(std::move(shard));
  }
  return shards;
}

std::string Remedy(const std::string& dir) {
  return absl::StrCat(": 'assay dataset index ", dir, "' makes it from the archives");
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListShards(const std::string& dir) {
  const std::string folder = JoinPath(dir, kShardFolder);
  std::vector<std::string> shards;
  if (!FileExists(folder)) return shards;
  ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(folder));
  for (std::string& name : names)
    if (std::any_of(std::begin(kSuffixes), std::end(kSuffixes),
                    [&](absl::string_view suffix) { return absl::EndsWith(name, suffix); }))
      shards.push_back(std::move(name));
  return shards;
}

std::string ShardPath(const std::string& dir, absl::string_view name) {
  return JoinPath(JoinPath(dir, kShardFolder), name);
}

ShardReader::ShardReader(std::string path, UniqueFd file)
    : path_(std::move(path)),
      file_(std::move(file)),
      archive_(archive_read_new(), archive_read_free) {}

absl::StatusOr<ShardReader> ShardReader::Open(const std::string& path) {
  ASSIGN_OR_RETURN(UniqueFd file, OpenRegularFile(path));
  posix_fadvise(file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  ShardReader reader(path, std::move(file));
  archive* const from = reader.archive_.get();
  archive_read_support_format_tar(from);
  // ARCHIVE_WARN: by a program outside, whichever that is.
  if (archive_read_support_filter_gzip(from) != ARCHIVE_OK ||
      archive_read_support_filter_zstd(from) != ARCHIVE_OK)
    return absl::FailedPreconditionError(
        "this node's libarchive cannot decompress gzip and zstd itself");
  if (archive_read_open_fd(from, reader.file_.get(), kReadBytes) != ARCHIVE_OK)
    return reader.Damaged();
  return reader;
}

absl::Status ShardReader::Damaged() const {
  const char* const why = archive_error_string(archive_.get());
  return absl::DataLossError(
      absl::StrCat(path_, " cannot be read: ", why == nullptr ? "it is damaged" : why));
}

absl::Status ShardReader::Refused(absl::string_view member, absl::string_view why) const {
  return absl::InvalidArgumentError(
      absl::StrCat(path_, ": its member \"", member, "\" ", why, ": make the archive anew"));
}

absl::StatusOr<std::optional<ShardMember>> ShardReader::Next() {
  for (;;) {
    archive_entry* entry = nullptr;
    const int next = archive_read_next_header(archive_.get(), &entry);
    if (next == ARCHIVE_EOF) return std::nullopt;
    if (next != ARCHIVE_OK) return Damaged();
    const char* const said = archive_entry_pathname(entry);
    ShardMember member{.name = std::string(absl::StripPrefix(absl::NullSafeStringView(said), "./")),
                       .bytes = archive_entry_size(entry)};
    if (const std::string why = WhyStrange(entry); !why.empty()) return Refused(member.name, why);
    if (archive_entry_filetype(entry) == AE_IFDIR) continue;
    // The next header is found behind its content.
    if (member.name == kManifestName && member.bytes <= kManifestBytesMax) continue;
    return member;
  }
}

absl::StatusOr<size_t> ShardReader::Read(std::span<char> memory) {
  const la_ssize_t n = archive_read_data(archive_.get(), memory.data(), memory.size());
  if (n < 0) return Damaged();
  return static_cast<size_t>(n);
}

void ShardReader::GiveUpPages() const {
  posix_fadvise(file_.get(), 0, 0, POSIX_FADV_DONTNEED);
}

absl::StatusOr<std::vector<Shard>> ReadShards(const std::string& dir, const Manifest& manifest,
                                              int threads, ProgressCallback progress) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListShards(dir));
  if (names.empty())
    return absl::NotFoundError(absl::StrCat("there are no archives in ",
                                            JoinPath(dir, kShardFolder),
                                            ": 'assay dataset pack' makes some"));
  std::vector<Shard> shards(names.size());
  MemberCheck check(manifest, std::move(progress));
  RETURN_IF_ERROR(ForEachIndex(std::ssize(names), threads, [&](int, int64_t i) -> absl::Status {
    const auto at = static_cast<size_t>(i);
    shards[at].name = names[at];
    ASSIGN_OR_RETURN(shards[at].files, check.Read(ShardPath(dir, names[at])));
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(check.Finish());
  return shards;
}

absl::Status SaveShardIndex(const std::string& dir, absl::string_view digest,
                            const std::vector<Shard>& shards) {
  // One archive per line, so that diff and grep work.
  std::string text = absl::StrCat("{\n  \"format\": \"", kFormat, "\",\n  \"dataset\": \"", digest,
                                  "\",\n  \"shards\": [");
  absl::string_view separator = "\n";
  for (const Shard& shard : shards) {
    const Json json = {{"name", shard.name}, {"files", shard.files}};
    absl::StrAppend(&text, separator, "    ",
                    json.dump(-1, ' ', false, Json::error_handler_t::replace));
    separator = ",\n";
  }
  absl::StrAppend(&text, "\n  ]\n}\n");
  return WriteFileAtomic(JoinPath(dir, kShardIndexName), text);
}

absl::StatusOr<std::vector<Shard>> LoadShardIndex(const std::string& dir,
                                                  absl::string_view digest) {
  const std::string path = JoinPath(dir, kShardIndexName);
  const absl::StatusOr<std::string> text = ReadFile(path, kManifestBytesMax);
  if (absl::IsNotFound(text.status()))
    return absl::NotFoundError(absl::StrCat("there is no ", path, Remedy(dir)));
  RETURN_IF_ERROR(text.status());
  absl::StatusOr<std::vector<Shard>> shards = ParseIndex(*text, digest);
  if (!shards.ok())
    return absl::DataLossError(absl::StrCat(path, ": ", shards.status().message(), Remedy(dir)));
  return shards;
}

absl::StatusOr<std::vector<std::string>> ListSamplesOf(const Manifest& manifest, Split split,
                                                       int64_t count, absl::string_view suffix) {
  const std::string folder = absl::StrCat(SplitName(split), "/");
  std::vector<std::string> samples;
  for (const ManifestFile& file : manifest.files)
    if (absl::StartsWith(file.path, folder) && absl::EndsWith(file.path, suffix))
      samples.push_back(file.path);
  if (std::ssize(samples) < count)
    return absl::FailedPreconditionError(
        absl::StrCat("the dataset's manifest lists ", samples.size(), " samples in ", folder,
                     ", but the configuration asks for ", count,
                     ": lower the number of samples or complete the dataset"));
  samples.resize(static_cast<size_t>(count));
  return samples;
}

}  // namespace assay::dataset
