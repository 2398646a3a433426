#include "server/store/usage.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/foreign_file.h"
#include "common/program_contract.h"
#include "common/status.h"
#include "server/core/types.h"
#include "server/store/artifacts.h"
#include "server/store/sqlite.h"

namespace assay::store {
namespace {

constexpr char kSelectArtifactsOfUsage[] =
    "SELECT sha256, MIN(id), file_name FROM artifacts GROUP BY sha256";

// By the beginning of a file's name.
struct NamedKind {
  absl::string_view prefix;
  absl::string_view kind;
};
// Not constexpr: under UBSan the address of a prefix is no constant.
const NamedKind kKindsOfArtifacts[] = {
    {core::kResultPrefix, "logs"},
    {core::kSourceFileName, "sources"},
    {"progress.jsonl", "progress"},
    {"telemetry_", "telemetry"},
    {kTouchPrefix, "witness"},
    {kObservedPrefix, "witness"},
    {"caches_", "witness"},
    {kForeignPrefix, "witness"},
    {"arrivals.jsonl", "witness"},
    {"clock", "witness"},
    {"step_", "logs of steps"},
    {"system_", "descriptions of systems"},
    {kPreflightPrefix, "checks of nodes"},
    {kMaterialsPrefix, "materials"},
};

std::string KindOfArtifact(absl::string_view file_name) {
  for (const NamedKind& named : kKindsOfArtifacts)
    if (absl::StartsWith(file_name, named.prefix)) return absl::StrCat("artifacts: ", named.kind);
  return "artifacts: other files of runs";
}

// Of a file in the data directory itself.
std::string KindOfEntry(absl::string_view name) {
  if (name == "assay.db") return "database";
  if (absl::StartsWith(name, "assay.db-")) return "write-ahead log";
  if (name == "ballast") return "reserve for a full disk";
  if (absl::EndsWith(name, ".bak")) return "copies before migrations";
  return "other";
}

using Kinds = std::map<std::string, core::UsageOfKind>;

void Count(std::string kind, int64_t bytes, Kinds* kinds) {
  core::UsageOfKind& usage = (*kinds)[kind];
  usage.kind = std::move(kind);
  ++usage.count;
  usage.bytes += bytes;
}

absl::Status CountFiles(const std::string& directory, Kinds* kinds) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    struct stat info {};
    // A file may go while we look.
    if (lstat(JoinPath(directory, name).c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    Count(KindOfEntry(name), info.st_size, kinds);
  }
  return absl::OkStatus();
}

absl::Status CountArtifacts(const std::string& directory, Kinds* kinds) {
  ASSIGN_OR_RETURN(Db db, Db::Open(JoinPath(directory, "assay.db"), OpenMode::kReadOnly));
  ASSIGN_OR_RETURN(Stmt select, db.Prepare(kSelectArtifactsOfUsage));
  const auto artifacts = ArtifactStore::View(JoinPath(directory, "artifacts"));
  while (true) {
    ASSIGN_OR_RETURN(const bool is_row, select.Step());
    if (!is_row) return absl::OkStatus();
    Count(KindOfArtifact(select.Text(2)), artifacts->StoredBytes(std::string(select.Text(0))),
          kinds);
  }
}

}  // namespace

absl::StatusOr<core::StoreUsage> MeasureUsage(const std::string& data_directory) {
  Kinds kinds;
  RETURN_IF_ERROR(CountFiles(data_directory, &kinds));
  RETURN_IF_ERROR(CountArtifacts(data_directory, &kinds));
  core::StoreUsage usage;
  for (auto& [name, kind] : kinds)
    usage.kinds.push_back(std::move(kind));
  std::stable_sort(usage.kinds.begin(), usage.kinds.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  struct statvfs info {};
  if (statvfs(data_directory.c_str(), &info) != 0)
    return absl::ErrnoToStatus(errno, data_directory);
  usage.free_bytes = static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
  return usage;
}

}  // namespace assay::store
