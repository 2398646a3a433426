#include "common/package/repository.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/package/text.h"

namespace assay::package {
namespace {

constexpr int kShownOfAKind = 40;

class Walk {
 public:
  Walk(const TreeReader& tree, std::string label) : tree_(tree), label_(std::move(label)) {}

  // Without recursion: depth is the submitter's choice.
  RepositoryReport Run(const std::string& path) {
    CheckName(label_, label_);
    std::vector<std::string> pending = {""};  // below path
    while (!pending.empty()) {
      const std::string below = std::move(pending.back());
      pending.pop_back();
      const absl::StatusOr<std::vector<std::string>> names = ListDirectory(JoinPath(path, below));
      if (!names.ok()) {
        Add("R-REPO-004", below, std::string(names.status().message()));
        continue;
      }
      for (auto name = names->rbegin(); name != names->rend(); ++name) {
        const std::string child = below.empty() ? *name : JoinPath(below, *name);
        if (CheckEntry(JoinPath(path, child), child, *name)) pending.push_back(child);
      }
    }
    std::stable_sort(
        report_.findings.begin(), report_.findings.end(),
        [](const PackageFinding& a, const PackageFinding& b) { return a.path < b.path; });
    for (const auto& [rule, count] : counts_)
      if (count > kShownOfAKind)
        report_.findings.push_back(
            {Printable(label_),
             Violation(rule, absl::StrCat(count - kShownOfAKind, " more of these"))});
    return std::move(report_);
  }

 private:
  // True if the entry is a folder to walk into.
  bool CheckEntry(const std::string& path, const std::string& below, const std::string& name) {
    struct stat info = {};
    if (lstat(path.c_str(), &info) != 0) {
      Add("R-REPO-004", below, "cannot be looked at");
      return false;
    }
    if (S_ISDIR(info.st_mode)) {
      CheckName(below, name);
      return true;
    }
    const PathKind kind = tree_.KindOf(path);
    if (kind == PathKind::kDirectory) return false;  // a link: the official walk sees no entry
    ++report_.file_count;
    CheckName(below, name);
    if (kind == PathKind::kBrokenLink || kind == PathKind::kOutsideLink) {
      report_.are_links_ok = report_.are_links_ok && kind != PathKind::kBrokenLink;
      Add("R-REPO-003", below, Describe(kind));
    }
    if (S_ISREG(info.st_mode) && info.st_size > kRepositoryFileBytesMax) {
      report_.are_sizes_ok = false;
      Add("R-REPO-002", below, absl::StrCat(info.st_size, " bytes"));
    }
    return false;
  }

  void CheckName(const std::string& below, const std::string& name) {
    if (!absl::StartsWith(name, ".") && !absl::StrContains(name, " ")) return;
    report_.are_names_ok = false;
    Add("R-REPO-001", below == label_ ? "" : below, absl::StrCat("\"", name, "\""));
  }

  void Add(const std::string& rule, const std::string& below, absl::string_view found) {
    if (++counts_[rule] > kShownOfAKind) return;
    report_.findings.push_back(
        {Printable(below.empty() ? label_ : JoinPath(label_, below)), Violation(rule, found)});
  }

  const TreeReader& tree_;
  const std::string label_;
  RepositoryReport report_;
  std::map<std::string, int> counts_;
};

}  // namespace

RepositoryReport CheckRepository(const TreeReader& tree, const std::string& path,
                                 const std::string& label) {
  return Walk(tree, label).Run(path);
}

}  // namespace assay::package
