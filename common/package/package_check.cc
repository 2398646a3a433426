#include "common/package/package_check.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

#include "common/file.h"
#include "common/package/directory_check.h"
#include "common/package/json_file.h"
#include "common/package/results_tree.h"
#include "common/package/system_description.h"
#include "common/package/text.h"
#include "common/status.h"

namespace assay::package {
namespace {

bool HoldsResultFiles(const std::string& path) {
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(path);
  return names.ok() && std::any_of(names->begin(), names->end(), IsResultFile);
}

class OrganizationCheck {
 public:
  OrganizationCheck(const TreeReader& tree, const rules::RuleSet& rules,
                    const PackageOptions& options, std::string path, const std::string& name)
      : tree_(tree), rules_(rules), options_(options), path_(std::move(path)) {
    report_.organization = Printable(name);
    name_ = name;
  }

  OrganizationReport Run() {
    CheckSystems();
    CheckResults();
    CheckUnusedSystems();
    CheckThroughputIsNotAlone();
    report_.repository = CheckRepository(tree_, path_, name_);
    return std::move(report_);
  }

 private:
  // What `below`, a path in the organisation's folder, is called in findings.
  std::string Label(absl::string_view below) const {
    return absl::StrCat(report_.organization, "/", Printable(below));
  }
  void Add(absl::string_view below, rules::Finding finding) {
    report_.findings.push_back({Label(below), std::move(finding)});
  }
  std::string Path(absl::string_view below) const { return JoinPath(path_, below); }

  // Folders in `below`, by name, links to folders of the tree included. Links that leave the tree
  // are findings, as the official checker would follow them.
  std::vector<std::string> Folders(const std::string& below) {
    const absl::StatusOr<std::vector<std::string>> names = ListDirectory(Path(below));
    if (!names.ok()) {
      Add(below, Violation("R-PKG-011", "a folder that cannot be listed"));
      return {};
    }
    std::vector<std::string> folders;
    for (const std::string& name : *names) {
      const std::string child = JoinPath(below, name);
      const PathKind kind = tree_.KindOf(Path(child));
      if (kind == PathKind::kDirectory) folders.push_back(name);
      if (kind == PathKind::kOutsideLink) Add(child, Violation("R-PKG-011", Describe(kind)));
    }
    return folders;
  }

  // ---------------------------------------------------------------------------------- systems

  void CheckSystems() {
    const absl::StatusOr<std::vector<std::string>> names = ListDirectory(Path("systems"));
    if (!names.ok()) return;  // each system with results then lacks its description
    for (const std::string& name : *names) {
      if (!absl::EndsWith(name, ".json") || absl::StartsWith(name, ".")) continue;
      const std::string system(absl::StripSuffix(name, ".json"));
      described_.insert(system);
      const std::string below = absl::StrCat("systems/", name);
      const absl::StatusOr<std::string> bytes = tree_.Read(Path(below), kSmallFileBytesMax);
      if (!bytes.ok()) {
        Add(below, Violation("R-PKG-011", ReasonOf(below)));
        continue;
      }
      for (rules::Finding& finding :
           CheckSystemDescription(*bytes, {.organization = name_, .system = system})) {
        // Round 0.7 had no check of descriptions.
        if (!rules_.data().scaling_folders) finding.severity = rules::Severity::kWarning;
        Add(below, std::move(finding));
      }
    }
  }

  std::string ReasonOf(const std::string& below) const {
    const PathKind kind = tree_.KindOf(Path(below));
    return kind == PathKind::kFile ? absl::StrCat("a file that cannot be read, or of more than ",
                                                  kSmallFileBytesMax, " bytes")
                                   : std::string(Describe(kind));
  }

  // closed or open, as the official checker takes it; empty where it dies, with a finding.
  std::string DivisionOf(const std::string& system) {
    const auto [known, is_new] = divisions_.try_emplace(system);
    if (!is_new) return known->second;
    const std::string below = absl::StrCat("systems/", system, ".json");
    const absl::StatusOr<std::string> bytes = tree_.Read(Path(below), kSmallFileBytesMax);
    const absl::StatusOr<JsonValue> json =
        bytes.ok() ? ParseJsonFile(*bytes) : absl::StatusOr<JsonValue>(bytes.status());
    const JsonValue* division = json.ok() ? json->Find("division") : nullptr;
    if (division == nullptr) {
      Add(below, Violation("R-PKG-004", !bytes.ok()  ? ReasonOf(below)
                                        : !json.ok() ? std::string(json.status().message())
                                                     : "no member division"));
      return "";
    }
    const std::string* text = division->AsString();
    known->second = text != nullptr && *text == "closed" ? "closed" : "open";
    return known->second;
  }

  void CheckUnusedSystems() {
    for (const std::string& system : described_)
      if (with_results_.count(system) == 0)
        Add(absl::StrCat("systems/", system, ".json"),
            Violation("R-DESC-010", "no results of this system"));
  }

  // ---------------------------------------------------------------------------------- results

  void CheckResults() {
    if (!tree_.IsDirectory(Path("results"))) {
      Add("results", Violation("R-PKG-002", Describe(tree_.KindOf(Path("results")))));
      return;
    }
    for (const std::string& system : Folders("results"))
      CheckSystemFolder(system);
    if (with_results_.empty())
      Add("results", Violation("R-PKG-002", "no folder with results of a system"));
  }

  void CheckSystemFolder(const std::string& system) {
    with_results_.insert(system);
    const std::string below = absl::StrCat("results/", system);
    if (HoldsResultFiles(Path(below)))
      Add(below, Violation("R-PKG-003", "result files in the system's folder"));
    DirectoryPlace place{.system = system};
    const CheckerParams params = ReadParams(tree_, Path(below), Label(below), &report_.findings);
    place.bypasses_rcp = options_.bypasses_rcp || params.bypasses_rcp;
    place.bypasses_seeds = options_.bypasses_seeds || params.bypasses_seeds;
    if (rules_.data().scaling_folders) {
      CheckScalings(below, place);
    } else {
      CheckBenchmarks(below, place);
    }
  }

  // The folders strong and weak of a system.
  void CheckScalings(const std::string& below, const DirectoryPlace& place) {
    for (const std::string& scaling : Folders(below)) {
      const std::string child = JoinPath(below, scaling);
      if (HoldsResultFiles(Path(child)))
        Add(child, Violation("R-PKG-003", "result files one level too high"));
      DirectoryPlace scaled = place;
      scaled.scaling = scaling;
      if (scaling == "strong" || scaling == "weak") {
        CheckBenchmarks(child, scaled);
      } else if (const std::vector<std::string> folders = Folders(child); !folders.empty()) {
        Add(child, Violation("R-PKG-003", absl::StrCat("the level \"", scaling, "\" with ",
                                                       absl::StrJoin(folders, ", "))));
      }
    }
  }

  void CheckBenchmarks(const std::string& below, const DirectoryPlace& place) {
    for (const std::string& benchmark : Folders(below)) {
      const std::string child = JoinPath(below, benchmark);
      if (!rules_.data().scaling_folders && (benchmark == "strong" || benchmark == "weak")) {
        Add(child, Violation("R-PKG-003", absl::StrCat("the level \"", benchmark, "\""),
                             "results/SYSTEM/BENCHMARK, as round 0.7 had it"));
        continue;
      }
      DirectoryPlace directory = place;
      directory.path = Path(child);
      directory.label = Label(child);
      directory.benchmark = benchmark;
      directory.division = DivisionOf(place.system);
      if (options_.progress) options_.progress(directory.label);
      report_.directories.push_back(CheckDirectory(tree_, rules_, directory));
      if (!report_.directories.back().is_skipped) CheckCode(directory);
    }
  }

  // ------------------------------------------------------------------------------------- code

  // No tool checks the code; where a submitter's layout is a usual one, missing parts are named.
  void CheckCode(const DirectoryPlace& place) {
    const std::string base = absl::StrCat("benchmarks/", place.benchmark);
    std::vector<PackageFinding>& findings = report_.directories.back().findings;
    for (const std::string& below : {absl::StrCat(base, "/", place.system),
                                     absl::StrCat(base, "/implementations/", place.system)}) {
      if (!tree_.IsDirectory(Path(below))) continue;
      const std::vector<std::string> missing = MissingCode(below, place.system);
      if (!missing.empty())
        findings.push_back(
            {Label(below),
             Violation("R-PKG-021", absl::StrCat("no ", absl::StrJoin(missing, ", ")))});
      return;
    }
    findings.push_back(
        {Label(base), Violation("R-PKG-021", absl::StrCat("no folder ", place.system))});
  }

  std::vector<std::string> MissingCode(const std::string& below, const std::string& system) const {
    std::vector<std::string> missing;
    for (const char* name : {"README.md", "setup.sh", "init_datasets.sh", "run_and_time.sh"})
      if (tree_.KindOf(Path(JoinPath(below, name))) != PathKind::kFile) missing.push_back(name);
    const absl::StatusOr<std::vector<std::string>> names = ListDirectory(Path(below));
    const bool has_description =
        names.ok() && std::any_of(names->begin(), names->end(), [&](const std::string& name) {
          return absl::StartsWith(name, absl::StrCat(system, "_")) && absl::EndsWith(name, ".json");
        });
    if (!has_description) missing.push_back(absl::StrCat(system, "_IMPL.json"));
    return missing;
  }

  // Throughput is optional, and never handed in without a time to solution of the same benchmark.
  void CheckThroughputIsNotAlone() {
    std::set<std::string> strong;
    for (const DirectoryReport& directory : report_.directories)
      if (directory.scaling == "strong") strong.insert(directory.benchmark);
    for (DirectoryReport& directory : report_.directories)
      if (directory.scaling == "weak" && !directory.is_skipped &&
          strong.count(directory.benchmark) == 0)
        directory.findings.push_back(
            {directory.path, Violation("R-PKG-020", "throughput only, in the whole package")});
  }

  const TreeReader& tree_;
  const rules::RuleSet& rules_;
  const PackageOptions& options_;
  const std::string path_;
  std::string name_;
  OrganizationReport report_;
  std::set<std::string> described_;     // systems with a description
  std::set<std::string> with_results_;  // systems with results
  std::map<std::string, std::string> divisions_;
};

bool IsOrganization(const TreeReader& tree, const std::string& path) {
  return tree.IsDirectory(JoinPath(path, "results")) || tree.IsDirectory(JoinPath(path, "systems"));
}

// The last part of the path without links and dots: what the folder is really called.
std::string NameOf(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), std::free);
  const std::string whole = real == nullptr ? path : std::string(real.get());
  return whole.substr(whole.rfind('/') + 1);
}

}  // namespace

int OrganizationReport::error_count() const {
  int count = CountErrors(findings);
  for (const DirectoryReport& directory : directories)
    count += CountErrors(directory.findings);
  return count;
}

int OrganizationReport::warning_count() const {
  size_t count = findings.size();
  for (const DirectoryReport& directory : directories)
    count += directory.findings.size();
  return static_cast<int>(count) - error_count();
}

int OrganizationReport::run_count() const {
  size_t count = 0;
  for (const DirectoryReport& directory : directories)
    count += directory.runs.size();
  return static_cast<int>(count);
}

absl::StatusOr<std::vector<OrganizationReport>> CheckPackages(const std::string& path,
                                                              const rules::RuleSet& rules,
                                                              const PackageOptions& options) {
  ASSIGN_OR_RETURN(const TreeReader tree, TreeReader::Open(path));
  std::vector<OrganizationReport> reports;
  if (IsOrganization(tree, path)) {
    reports.push_back(OrganizationCheck(tree, rules, options, path, NameOf(path)).Run());
    return reports;
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
  for (const std::string& name : names) {
    const std::string organization = JoinPath(path, name);
    if (absl::StartsWith(name, ".") || !tree.IsDirectory(organization) ||
        !IsOrganization(tree, organization))
      continue;
    reports.push_back(OrganizationCheck(tree, rules, options, organization, name).Run());
  }
  if (reports.empty())
    return absl::NotFoundError(absl::StrCat(
        path, " is no package: neither it nor a folder in it holds results or systems"));
  return reports;
}

}  // namespace assay::package
