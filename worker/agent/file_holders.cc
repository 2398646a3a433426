#include "worker/agent/file_holders.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

#include "common/file.h"

namespace assay::agent {
namespace {

constexpr size_t kHoldersMax = 100;
constexpr size_t kHoldersShown = 5;
constexpr int64_t kMapsBytesMax = int64_t{64} << 20;

// Of a file system with devices of its own for parts (btrfs) maps has another device than stat:
// there the path tells.
using FilesByInode = std::multimap<ino_t, const ResidentFile*>;

// A line of maps: "7f00-7f01 r--s 00000000 fe:00 131074   /data/train/a"
std::optional<std::string> Find(absl::string_view line, const FilesByInode& files) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::MaxSplits(absl::ByAnyChar(" "), 5));
  uint64_t inode = 0;
  if (words.size() < 6 || !absl::SimpleAtoi(words[4], &inode) || inode == 0) return std::nullopt;
  const std::vector<absl::string_view> numbers = absl::StrSplit(words[3], ':');
  uint32_t major = 0;
  uint32_t minor = 0;
  const bool has_device = numbers.size() == 2 && absl::SimpleHexAtoi(numbers[0], &major) &&
                          absl::SimpleHexAtoi(numbers[1], &minor);
  const absl::string_view path = absl::StripAsciiWhitespace(words[5]);
  for (auto [it, end] = files.equal_range(inode); it != end; ++it) {
    const ResidentFile& file = *it->second;
    const bool is_device = has_device && makedev(major, minor) == file.device;
    if (is_device || path == file.path) return file.path;
  }
  return std::nullopt;
}

std::optional<FileHolder> Look(pid_t pid, const std::string& maps, const FilesByInode& files) {
  for (const absl::string_view line : absl::StrSplit(maps, '\n')) {
    std::optional<std::string> path = Find(line, files);
    if (!path.has_value()) continue;
    const std::string process = absl::StrCat("/proc/", pid);
    const absl::StatusOr<std::string> name = ReadFile(absl::StrCat(process, "/comm"));
    struct stat info {};
    const bool is_there = stat(process.c_str(), &info) == 0;
    return FileHolder{.pid = pid,
                      .process = name.ok() ? std::string(absl::StripAsciiWhitespace(*name)) : "",
                      .account = is_there ? info.st_uid : 0,
                      .path = *std::move(path)};
  }
  return std::nullopt;
}

}  // namespace

FileHolders FindHolders(const std::vector<ResidentFile>& files) {
  FilesByInode by_inode;
  for (const ResidentFile& file : files)
    by_inode.emplace(file.inode, &file);
  FileHolders found;
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory("/proc");
  if (!names.ok()) return found;
  for (const std::string& name : *names) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(name, &pid) || found.holders.size() >= kHoldersMax) continue;
    const absl::StatusOr<std::string> maps =
        ReadFile(absl::StrCat("/proc/", name, "/maps"), kMapsBytesMax);
    if (absl::IsPermissionDenied(maps.status())) ++found.hidden_count;
    if (!maps.ok()) continue;
    std::optional<FileHolder> holder = Look(pid, *maps, by_inode);
    if (holder.has_value()) found.holders.push_back(*std::move(holder));
  }
  return found;
}

std::string Describe(const FileHolders& found) {
  std::string text = found.holders.empty() ? "no process that can be seen maps them" : "";
  for (size_t i = 0; i < std::min(found.holders.size(), kHoldersShown); ++i) {
    const FileHolder& holder = found.holders[i];
    absl::StrAppend(&text, i == 0 ? "" : "; ", holder.process, " (pid ", holder.pid, ", account ",
                    holder.account, ") maps ", holder.path);
  }
  if (found.holders.size() > kHoldersShown)
    absl::StrAppend(&text, "; and ", found.holders.size() - kHoldersShown, " more processes");
  if (found.hidden_count > 0)
    absl::StrAppend(&text, " (", found.hidden_count, " processes may not be looked at)");
  return text;
}

}  // namespace assay::agent
