// A package that passes, on disk, for tests to damage.

#ifndef TESTS_PACKAGE_SAMPLE_PACKAGE_H_
#define TESTS_PACKAGE_SAMPLE_PACKAGE_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/json_value.h"
#include "common/package/package_check.h"
#include "common/package/system_description.h"
#include "common/rules/registry.h"
#include "tests/rules/sample_log.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"

namespace assay::testing {

// Where its strong-scaling logs are, and how findings name that folder.
inline constexpr char kStrong[] = "results/sys/strong/cosmoflow";
inline constexpr char kStrongLabel[] = "ORG/results/sys/strong/cosmoflow";

// A log of CosmoFlow that converges more slowly than any reference, with a seed of its own.
inline SampleLog PackageLog(int seed) {
  SampleLog log = CosmoflowLog();
  log.SetMetadata("eval_error", "{\"epoch_num\": 60}");
  log.InsertAfter("global_batch_size",
                  {"seed", absl::StrCat(seed), "{\"file\": \"train.py\", \"lineno\": 12}"});
  return log;
}

// All members; the texts that must say something do.
inline JsonObject SampleDescription(const std::string& system, const std::string& division) {
  JsonObject description;
  for (const char* member : package::RequiredSystemMembers())
    description.emplace_back(member, "text");
  const auto set = [&](absl::string_view name, const std::string& value) {
    for (auto& [member, old] : description)
      if (member == name) old = value;
  };
  set("submitter", "ORG");
  set("division", division);
  set("status", "onprem");
  set("system_name", system);
  for (const char* number :
       {"number_of_nodes", "host_processors_per_node", "accelerators_per_node"})
    set(number, "4");
  return description;
}

class SamplePackage {
 public:
  // ORG with ten closed CosmoFlow runs on the system sys.
  SamplePackage() {
    Describe("sys", "closed");
    AddRuns("results/sys/strong/cosmoflow", 10);
  }

  // `name` is a path in ORG.
  std::string Path(absl::string_view name) const {
    return dir_.Path(absl::StrCat("repository/ORG/", name));
  }
  std::string repository() const { return dir_.Path("repository"); }
  void Write(const std::string& name, absl::string_view text) const {
    const std::string path = Path(name);
    CHECK_OK(MakeDirectories(path.substr(0, path.rfind('/'))));
    WriteFile(path, text);
  }
  void Describe(const std::string& system, const std::string& division) const {
    Write(absl::StrCat("systems/", system, ".json"), DumpJson(SampleDescription(system, division)));
  }
  // result_0.txt to result_<count - 1>.txt.
  void AddRuns(const std::string& folder, int count) const {
    for (int i = 0; i < count; ++i)
      Write(Result(folder, i), PackageLog(i + 1).Text());
  }
  static std::string Result(const std::string& folder, int number) {
    return absl::StrCat(folder, "/result_", number, ".txt");
  }

  // The report on ORG.
  package::OrganizationReport Check(const std::string& round = "hpc-3.0",
                                    const package::PackageOptions& options = {}) const {
    const auto reports = package::CheckPackages(repository(), *rules::FindRuleSet(round), options);
    CHECK_OK(reports.status());
    CHECK(reports->size() == 1);
    return (*reports)[0];
  }

 private:
  const TempDir dir_;
};

// "R-PKG-006 ORG/...": rules and paths of a report's findings of one severity.
inline std::vector<std::string> Findings(const package::OrganizationReport& report,
                                         rules::Severity severity) {
  std::vector<std::string> texts;
  const auto add = [&](const std::vector<package::PackageFinding>& findings) {
    for (const package::PackageFinding& found : findings)
      if (found.finding.severity == severity)
        texts.push_back(absl::StrCat(found.finding.rule_id, " ", found.path));
  };
  add(report.findings);
  for (const package::DirectoryReport& directory : report.directories)
    add(directory.findings);
  return texts;
}
inline std::vector<std::string> Errors(const package::OrganizationReport& report) {
  return Findings(report, rules::Severity::kError);
}
inline std::vector<std::string> Warnings(const package::OrganizationReport& report) {
  return Findings(report, rules::Severity::kWarning);
}

}  // namespace assay::testing

#endif  // TESTS_PACKAGE_SAMPLE_PACKAGE_H_
