#include "worker/agent/workload/collected.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include "common/file.h"
#include "common/log.h"
#include "common/status.h"

namespace assay::agent {
namespace {

namespace fs = std::filesystem;

bool IsWanted(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&name](const std::string& pattern) {
    return fnmatch(pattern.c_str(), name.c_str(), FNM_PATHNAME | FNM_NOESCAPE) == 0;
  });
}

absl::Status Copy(int from, int64_t offset, int64_t byte_count, int to) {
  std::string piece(1 << 20, '\0');
  while (byte_count > 0) {
    const auto wanted =
        static_cast<size_t>(std::min<int64_t>(byte_count, static_cast<int64_t>(piece.size())));
    const ssize_t n = pread(from, piece.data(), wanted, offset);
    if (n <= 0) return absl::ErrnoToStatus(n < 0 ? errno : EIO, "cannot read");
    RETURN_IF_ERROR(WriteAll(to, {piece.data(), static_cast<size_t>(n)}));
    offset += n;
    byte_count -= n;
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<ArtifactFile> CollectOutput(const std::string& output,
                                        const std::vector<std::string>& patterns, int node_rank) {
  std::set<std::string> names;
  std::error_code error;
  if (patterns.empty()) return {};
  for (fs::recursive_directory_iterator it(output, error), end; !error && it != end;
       it.increment(error)) {
    if (it->symlink_status(error).type() != fs::file_type::regular) continue;
    std::string name = it->path().string().substr(output.size() + 1);
    if (IsWanted(name, patterns)) names.insert(std::move(name));
  }
  std::vector<ArtifactFile> files;
  std::set<std::string> taken;
  int64_t bytes = 0;
  for (const std::string& name : names) {
    std::string artifact =
        absl::StrCat("output_", node_rank, "_", absl::StrReplaceAll(name, {{"/", "_"}}));
    const std::string path = JoinPath(output, name);
    const int64_t size = FileSize(path).value_or(0);
    if (files.size() >= kCollectedCountMax || bytes + size > kCollectedBytesMax ||
        !taken.insert(artifact).second) {
      LOG(WARNING) << "not collected: " << path << " bytes=" << size;
      continue;
    }
    bytes += size;
    files.push_back({std::move(artifact), path});
  }
  return files;
}

absl::Status CutMiddle(const std::string& path, int64_t bytes_max) {
  const absl::StatusOr<int64_t> size = FileSize(path);
  if (!size.ok()) return absl::IsNotFound(size.status()) ? absl::OkStatus() : size.status();
  // What says so must not make it too long again.
  constexpr int64_t kNoteBytes = 100;
  if (*size <= bytes_max + kNoteBytes) return absl::OkStatus();
  const std::string part = absl::StrCat(path, ".part");
  ASSIGN_OR_RETURN(const UniqueFd from, OpenRegularFile(path, Links::kRefuse));
  const UniqueFd to(
      open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!to.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", part));
  const int64_t half = bytes_max / 2;
  RETURN_IF_ERROR(Copy(from.get(), 0, half, to.get()));
  RETURN_IF_ERROR(WriteAll(to.get(), absl::StrCat("\n[", *size - 2 * half, " bytes left out]\n")));
  RETURN_IF_ERROR(Copy(from.get(), *size - half, half, to.get()));
  return RenameSynced(part, path);
}

}  // namespace assay::agent
