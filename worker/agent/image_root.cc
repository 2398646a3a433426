#include "worker/agent/image_root.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/file.h"

namespace assay::agent {
namespace {

constexpr char kDriverFolder[] = "/usr/local/nvidia/lib64";
// Of NVIDIA's driver, what programs that compute load.
constexpr const char* kDriverLibraries[] = {"libcuda.so.1", "libcudadebugger.so.1",
                                            "libnvidia-ml.so.1", "libnvidia-nvvm.so.4",
                                            "libnvidia-ptxjitcompiler.so.1"};

bool HasBelow(const std::set<std::string>& mounted, const std::string& folder) {
  const std::string prefix = absl::StrCat(folder, "/");
  const auto next = mounted.lower_bound(prefix);
  return next != mounted.end() && absl::StartsWith(*next, prefix);
}

void AddFolder(const std::string& root, const std::string& folder,
               const std::set<std::string>& mounted, std::vector<std::string>* words) {
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(absl::StrCat(root, folder));
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const std::string path = absl::StrCat(folder, "/", name);
    const std::string outside = absl::StrCat(root, path);
    if (mounted.contains(path)) continue;
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::symlink_status(outside, error);
    const bool is_on_the_way = HasBelow(mounted, path);
    if (std::filesystem::is_symlink(status)) {
      // One on the way would lead what is to be mounted elsewhere.
      if (!is_on_the_way)
        words->insert(words->end(),
                      {"--symlink", std::filesystem::read_symlink(outside, error).string(), path});
    } else if (std::filesystem::is_directory(status) && is_on_the_way) {
      words->insert(words->end(), {"--dir", path});
      AddFolder(root, path, mounted, words);
    } else if (std::filesystem::is_directory(status) || std::filesystem::is_regular_file(status)) {
      words->insert(words->end(), {"--ro-bind", outside, path});
    }
  }
}

}  // namespace

std::vector<std::string> ImageArguments(const std::string& root,
                                        const std::set<std::string>& mounted) {
  std::vector<std::string> words;
  AddFolder(root, "", mounted, &words);
  return words;
}

std::map<std::string, std::string> DriverLibraries(const std::vector<std::string>& folders) {
  std::map<std::string, std::string> libraries;
  for (const std::string& folder : folders)
    for (const char* const name : kDriverLibraries)
      if (const std::string path = JoinPath(folder, name); FileExists(path))
        libraries.emplace(JoinPath(kDriverFolder, name), path);
  return libraries;
}

}  // namespace assay::agent
