#include "worker/agent/salvage.h"

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

constexpr int64_t kFileBytesMax = int64_t{4} << 30;

absl::Status CopyFile(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(MakeDirectories(fs::path(to).parent_path().string(), kPrivateDirectory));
  ASSIGN_OR_RETURN(const std::string content, ReadFile(from, kFileBytesMax, Links::kRefuse));
  return WriteFileAtomic(to, content, kPrivateFile);
}

}  // namespace

absl::Status SalvageRun(const RunDirectory& run, const std::vector<std::string>& artifacts,
                        const std::string& salvage_directory) {
  const std::string runs = JoinPath(salvage_directory, "runs");
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
  fs::rename(part, target, error);
  if (error) return absl::UnavailableError(absl::StrCat(target, ": ", error.message()));
  return absl::OkStatus();
}

}  // namespace assay::agent
