#include "tests/package/package_verdict.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "common/file.h"
#include "common/log.h"
#include "common/package/system_description.h"

namespace assay::package {
namespace {

void ReadLine(absl::string_view line, Statements* statements) {
  if (absl::StrContains(line, "files do not comply"))
    statements->insert(absl::StrCat(
        std::vector<std::string>(absl::StrSplit(line, ' ', absl::SkipEmpty()))[2], " fail"));
  if (absl::StrContains(line, "1 file does not comply")) statements->insert("1 forgiven");
  if (absl::StrContains(line, "Incorrect number of files") ||
      absl::StrContains(line, "Expected at least"))
    statements->insert("run_count");
  if (line == "ERROR - Seed checker failed") statements->insert("seeds");
  for (const char* outcome : {"Passed", "Failed"}) {
    const std::string mark = absl::StrCat(" - RCP Test ", outcome, ": ");
    const size_t at = line.find(mark);
    if (at != absl::string_view::npos)
      statements->insert(absl::StrCat(line.substr(at + mark.size()), ": ", outcome));
  }
}

Statements StatementsOf(const DirectoryReport& report) {
  Statements statements;
  for (const PackageFinding& found : report.findings) {
    const rules::Finding& finding = found.finding;
    if (finding.rule_id == "R-PKG-006" || finding.rule_id == "R-PKG-007")
      statements.insert("run_count");
    if (finding.rule_id == "R-PKG-008") statements.insert("1 forgiven");
    if (finding.rule_id == "R-PKG-009")
      statements.insert(absl::StrCat(finding.found.substr(0, finding.found.find(' ')), " fail"));
    if (absl::StartsWith(finding.rule_id, "R-SEED-") && finding.severity == rules::Severity::kError)
      statements.insert("seeds");
    if (finding.rule_id == "R-RCP-001")
      statements.insert(absl::StrCat(finding.found.substr(0, finding.found.find(';')), ": Failed"));
  }
  const bool failed =
      std::any_of(report.findings.begin(), report.findings.end(),
                  [](const PackageFinding& found) { return found.finding.rule_id == "R-RCP-001"; });
  if (!report.convergence.empty() && !failed)
    statements.insert(absl::StrCat(report.convergence, ": Passed"));
  return statements;
}

int CountPassed(const std::string& systems) {
  int passed = 0;
  for (const std::string& name : NamesIn(systems)) {
    const auto findings = CheckSystemDescription(*ReadFile(JoinPath(systems, name)), {});
    passed += std::none_of(findings.begin(), findings.end(), [](const rules::Finding& finding) {
      return finding.severity == rules::Severity::kError;
    });
  }
  return passed;
}

}  // namespace

std::vector<std::string> NamesIn(const std::string& path) {
  absl::StatusOr<std::vector<std::string>> names = ListDirectory(path);
  CHECK_OK(names.status());
  return *std::move(names);
}

std::map<std::string, OrganizationVerdict> ReadOfficial(absl::string_view text) {
  std::map<std::string, OrganizationVerdict> verdicts;
  OrganizationVerdict* current = nullptr;
  std::string directory;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::string whole(line);
    if (absl::ConsumePrefix(&line, "### ORG: ")) {
      current = &verdicts[std::string(line.substr(0, line.find(' ')))];
      directory.clear();
    } else if (absl::ConsumePrefix(&line, "INFO -  Running compliance checks in dir ")) {
      directory = std::string(line);
      current->directories[directory];
    } else if (absl::StartsWith(line, "INFO - Run ")) {
      ++current->runs[directory];
    } else if (absl::StrContains(line, "FOUND NO ERRORS, SUCCESS")) {
      current->pass = true;
    } else if (absl::StrContains(line, "System description checker passed")) {
      ++current->descriptions_passed;
    } else if (!directory.empty()) {
      ReadLine(whole, &current->directories[directory]);
    }
  }
  return verdicts;
}

OrganizationVerdict VerdictOf(const OrganizationReport& report, const std::string& repository) {
  OrganizationVerdict verdict{.pass = report.pass(),
                              .descriptions_passed = CountPassed(
                                  absl::StrCat(repository, "/", report.organization, "/systems"))};
  for (const DirectoryReport& directory : report.directories) {
    verdict.directories[directory.path] = StatementsOf(directory);
    verdict.runs[directory.path] = static_cast<int>(directory.runs.size());
  }
  return verdict;
}

}  // namespace assay::package
