// The package check: everything that an organisation hands in for a round, judged as the official
// package checker does, with the same verdict for each directory and each organisation.
//
// Where the official checker dies, the verdict is fail and the check goes on; where it never looks
// (results in the wrong place) there is an error. (Rules specification, sections 4.1 to 4.6.)

#ifndef COMMON_PACKAGE_PACKAGE_CHECK_H_
#define COMMON_PACKAGE_PACKAGE_CHECK_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/package/findings.h"
#include "common/package/repository.h"
#include "common/rules/ruleset.h"

namespace assay::package {

struct PackageOptions {
  bool bypasses_rcp = false;  // for all directories, as a file package_checker_params does for one
  bool bypasses_seeds = false;
  // Told what is about to be judged: "ORG/results/SYSTEM/strong/BENCHMARK". May be empty.
  std::function<void(absl::string_view)> progress;
};

struct RunReport {
  std::string file_name;  // "result_1.txt"
  bool pass = false;      // complies with the round's rules
  bool reached_target = false;
  std::optional<double> run_ms;
};

// results/SYSTEM/(strong|weak)/BENCHMARK.
struct DirectoryReport {
  std::string path;  // ORG/results/...; printable, like the next four
  std::string system;
  std::string scaling;  // strong, weak; empty in round 0.7
  std::string benchmark;
  std::string division;     // as the checks take it: closed, open; empty if nothing says so
  bool is_skipped = false;  // the round has no such benchmark
  int runs_required = 0;
  std::vector<RunReport> runs;    // by path
  std::vector<RunReport> pruned;  // of pruned_results, judged for the reader only
  bool is_seed_check_bypassed = false;
  bool is_rcp_check_bypassed = false;
  std::string convergence;              // the official wording; empty: not judged
  std::optional<double> normalization;  // what the score must be multiplied with, if above 1
  std::vector<PackageFinding> findings;

  bool pass() const { return CountErrors(findings) == 0; }
};

struct OrganizationReport {
  std::string organization;
  std::vector<PackageFinding> findings;  // of no result directory
  std::vector<DirectoryReport> directories;
  RepositoryReport repository;  // on its own: it does not change the verdict

  bool pass() const { return error_count() == 0; }
  int error_count() const;
  int warning_count() const;  // without the repository's
  int run_count() const;
};

// Judges the organisation in `path`, or each organisation below it (folders that hold results or
// systems), by name. NOT_FOUND if there is no such folder or no organisation in it; whatever is
// wrong inside is a finding.
absl::StatusOr<std::vector<OrganizationReport>> CheckPackages(const std::string& path,
                                                              const rules::RuleSet& rules,
                                                              const PackageOptions& options = {});

}  // namespace assay::package

#endif  // COMMON_PACKAGE_PACKAGE_CHECK_H_
