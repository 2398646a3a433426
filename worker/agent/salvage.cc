#include "worker/agent/salvage.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/status.h"

namespace assay::agent {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPieceBytes = 1 << 20;
constexpr char kRuns[] = "runs";  // below a data directory, and below a salvage directory

// In pieces: a model may be larger than what the memory of a job has left.
absl::Status CopyFile(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(MakeDirectories(fs::path(to).parent_path().string(), kPrivateDirectory));
  const UniqueFd source(open(from.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!source.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", from));
  const UniqueFd target(open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kPrivateFile));
  if (!target.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", to));
  std::string piece(kPieceBytes, '\0');
  ssize_t count = 0;
  while ((count = read(source.get(), piece.data(), piece.size())) > 0)
    RETURN_IF_ERROR(WriteAll(target.get(), {piece.data(), static_cast<size_t>(count)}));
  if (count < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", from));
  if (fsync(target.get()) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot sync ", to));
  return absl::OkStatus();
}

}  // namespace

absl::Status SalvageRun(const RunDirectory& run, const std::vector<std::string>& artifacts,
                        const std::string& salvage_directory) {
  const std::string runs = JoinPath(salvage_directory, kRuns);
  const std::string target = JoinPath(runs, fs::path(run.path()).filename().string());
  const std::string part = absl::StrCat(target, ".part");
  RETURN_IF_ERROR(RemoveTree(part));
  RETURN_IF_ERROR(MakeDirectories(part, kPrivateDirectory));
  std::set<std::string> paths;
  for (const std::string& path : artifacts)
    if (absl::StartsWith(path, absl::StrCat(run.path(), "/"))) paths.insert(path);
  std::error_code error;
  for (fs::recursive_directory_iterator it(run.path(), error), end; !error && it != end;
       it.increment(error)) {
    if (it->path() == run.RanksPath()) it.disable_recursion_pending();
    if (it->symlink_status(error).type() == fs::file_type::regular)
      paths.insert(it->path().string());
  }
  if (error) return absl::UnavailableError(absl::StrCat(run.path(), ": ", error.message()));
  for (const std::string& path : paths)
    RETURN_IF_ERROR(CopyFile(path, absl::StrCat(part, path.substr(run.path().size()))));
  RETURN_IF_ERROR(RemoveTree(target));
  return RenameSynced(part, target);
}

bool IsAllSalvaged(const std::string& data_directory, const std::string& salvage_directory) {
  const absl::StatusOr<std::vector<std::string>> runs =
      ListDirectory(JoinPath(data_directory, kRuns));
  if (!runs.ok()) return absl::IsNotFound(runs.status());
  const std::string kept = JoinPath(salvage_directory, kRuns);
  return std::all_of(runs->begin(), runs->end(),
                     [&kept](const std::string& run) { return FileExists(JoinPath(kept, run)); });
}

}  // namespace assay::agent
