#include "common/package/directory_check.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

#include "common/file.h"
#include "common/package/json_file.h"
#include "common/package/power.h"
#include "common/package/results_tree.h"
#include "common/package/seeds.h"
#include "common/package/text.h"
#include "common/rules/check.h"
#include "common/rules/rcp.h"

namespace assay::package {
namespace {

constexpr char kParamsFile[] = "package_checker_params";
constexpr int kOthersShown = 20;

// "result_1" of "result_1.txt".
std::string Stem(const std::string& name) {
  return std::string(absl::StripSuffix(name, ".txt"));
}

bool KillsTheReferenceChecker(const rules::Finding& finding) {
  return absl::StartsWith(finding.error_class, "crash:") ||
         absl::StartsWith(finding.error_class, "config_missing:");
}

// Only these failures of the convergence check can be bypassed (rules specification, 4.3).
bool CanBeBypassed(absl::string_view message) {
  return absl::StartsWith(message, "RCP found") || absl::StartsWith(message, "RCP Interpolation") ||
         absl::StartsWith(message, "Missing RCP");
}

class DirectoryCheck {
 public:
  DirectoryCheck(const TreeReader& tree, const rules::RuleSet& rules, const DirectoryPlace& place)
      : tree_(tree), rules_(rules), place_(place) {
    report_.path = place.label;
    report_.system = Printable(place.system);
    report_.scaling = Printable(place.scaling);
    report_.benchmark = Printable(place.benchmark);
    report_.division = place.division;
  }

  DirectoryReport Run() {
    const rules::Benchmark* benchmark = rules_.FindBenchmark(place_.benchmark);
    if (benchmark == nullptr) {
      report_.is_skipped = true;
      Add("", Violation("R-PKG-005", place_.benchmark));
      return std::move(report_);
    }
    report_.runs_required = benchmark->runs_required;
    folder_ = ReadResultFolder(tree_, place_.path);
    const CheckerParams params = ReadParams(tree_, place_.path, place_.label, &report_.findings);
    report_.is_rcp_check_bypassed = place_.bypasses_rcp || params.bypasses_rcp;
    report_.is_seed_check_bypassed = place_.bypasses_seeds || params.bypasses_seeds;
    ListEntries();
    CheckRunCount();
    JudgeRuns();
    CheckPowerFolder();
    AcceptOneFailedRun();
    CheckSeeds();
    CheckConvergence();
    CheckScalingFile();
    JudgePrunedRuns();
    return std::move(report_);
  }

 private:
  bool IsWeak() const { return place_.scaling == "weak"; }
  bool IsClosed() const { return rules_.data().scaling_folders && place_.division == "closed"; }

  // A finding about the directory, or about `name` in it.
  void Add(absl::string_view name, rules::Finding finding) {
    report_.findings.push_back(
        {name.empty() ? place_.label : absl::StrCat(place_.label, "/", Printable(name)),
         std::move(finding)});
  }

  void ListEntries() {
    const absl::StatusOr<std::vector<std::string>> names = ListDirectory(place_.path);
    if (!names.ok()) return Add("", Violation("R-PKG-011", names.status().ToString()));
    const std::set<std::string> expected = {"pruned_results", "power", "scaling.json", kParamsFile};
    int others = 0;
    for (const std::string& name : *names) {
      if (IsResultFile(name)) {
        result_names_.push_back(name);
        continue;
      }
      if (expected.count(name) == 0 && ++others <= kOthersShown)
        Add("", Violation("R-PKG-001", name));
      const std::string child = JoinPath(place_.path, name);
      if (expected.count(name) == 0 && tree_.IsDirectory(child) && HoldsResults(child))
        Add(name, Violation("R-PKG-022", "result files"));
    }
    if (others > kOthersShown)
      Add("", Violation("R-PKG-001", absl::StrCat(others - kOthersShown, " more entries")));
  }

  static bool HoldsResults(const std::string& path) {
    const absl::StatusOr<std::vector<std::string>> names = ListDirectory(path);
    return names.ok() && std::any_of(names->begin(), names->end(), IsResultFile);
  }

  void CheckRunCount() {
    const auto found = static_cast<int>(result_names_.size());
    const int required = report_.runs_required;
    if (IsWeak() && found < required)
      Add("", Violation("R-PKG-007", absl::StrCat(found, " result files"),
                        absl::StrCat("at least ", required, " result files")));
    if (!IsWeak() && found != required)
      Add("", Violation("R-PKG-006", absl::StrCat(found, " result files"),
                        absl::StrCat("exactly ", required, " result files")));
  }

  // What a log says about the package, against what the package says.
  void CompareWithPackage(const std::string& name, const rules::Facts& facts) {
    const bool is_other_benchmark = !facts.benchmark.empty() && facts.benchmark != place_.benchmark;
    const bool is_other_division =
        !facts.division.empty() && !place_.division.empty() && facts.division != place_.division;
    if (!is_other_benchmark && !is_other_division) return;
    if (differing_ == 0)
      differs_ =
          Violation("R-PKG-019", is_other_benchmark ? absl::StrCat("benchmark ", facts.benchmark)
                                                    : absl::StrCat("division ", facts.division));
    if (differing_++ == 0) first_differing_ = name;
  }

  void JudgeRuns() {
    for (const std::string& name : result_names_) {
      RunReport run{.file_name = Printable(name)};
      const absl::StatusOr<std::string> log = tree_.Read(JoinPath(place_.path, name), kLogBytesMax);
      if (log.ok()) {
        JudgeRun(name, *log, &run);
      } else {
        Add(name, Violation("R-PKG-011", WhatIs(name, log.status())));
      }
      if (!run.pass) failed_runs_.insert(Stem(name));
      report_.runs.push_back(std::move(run));
    }
    if (differing_ == 0) return;
    if (differing_ > 1) absl::StrAppend(&differs_.found, ", in ", differing_, " logs");
    Add(first_differing_, std::move(differs_));
  }

  // Paths on this disk are of no use to the reader.
  std::string WhatIs(const std::string& name, const absl::Status& status) const {
    const PathKind kind = tree_.KindOf(JoinPath(place_.path, name));
    if (kind != PathKind::kFile) return std::string(Describe(kind));
    return absl::IsInvalidArgument(status)
               ? absl::StrCat("more than ", kLogBytesMax, " bytes")
               : absl::StrCat("a file that cannot be read (",
                              absl::StatusCodeToString(status.code()), ")");
  }

  void JudgeRun(const std::string& name, const std::string& log, RunReport* run) {
    rules::CheckResult result = rules::Check(log, rules_);
    run->pass = result.pass;
    run->reached_target = result.facts.reached_target;
    run->run_ms = result.facts.run_ms();
    CompareWithPackage(name, result.facts);
    const auto crash =
        std::find_if(result.findings.begin(), result.findings.end(), KillsTheReferenceChecker);
    if (crash != result.findings.end()) {
      rules::Finding fatal = Violation("R-PKG-010", crash->found);
      fatal.line = crash->line;
      Add(name, std::move(fatal));
    }
    for (rules::Finding& finding : result.findings) {
      finding.found = Printable(finding.found);
      finding.expected = Printable(finding.expected);
      log_findings_.emplace_back(name, std::move(finding));
    }
    seeds_.AddLog(name, log);
    if (IsClosed()) convergence_.push_back(rules::ReadConvergence(log));
  }

  void CheckPowerFolder() {
    if (!folder_.has_power) return;
    std::vector<std::string> stems;
    PowerReport power;
    for (const std::string& name : result_names_) {
      stems.push_back(Stem(name));
      const PathKind kind =
          tree_.KindOf(JoinPath(place_.path, absl::StrCat("power/", stems.back())));
      if (kind == PathKind::kFile || kind == PathKind::kOther)
        Add("power", Violation("R-PWR-004", absl::StrCat(stems.back(), " is ", Describe(kind))));
    }
    power = CheckPower(stems, folder_.power);
    power_findings_ = std::move(power.findings);
    is_power_fatal_ = power.is_fatal;
    failed_runs_.insert(power.failed_runs.begin(), power.failed_runs.end());
  }

  // Olympic scoring forgives one run; its findings are then for the reader only.
  void AcceptOneFailedRun() {
    const bool is_accepted = failed_runs_.size() == 1;
    for (auto& [name, finding] : log_findings_) {
      if (is_accepted) finding.severity = rules::Severity::kWarning;
      Add(name, std::move(finding));
    }
    for (rules::Finding& finding : power_findings_) {
      const bool is_fatal = is_power_fatal_ && finding.rule_id == "R-PWR-004";
      if (is_accepted && !is_fatal) finding.severity = rules::Severity::kWarning;
      Add("power", std::move(finding));
    }
    if (is_accepted) {
      Add("", Violation("R-PKG-008", absl::StrCat(*failed_runs_.begin(), " does not comply")));
    } else if (failed_runs_.size() > 1) {
      Add("", Violation("R-PKG-009", absl::StrCat(failed_runs_.size(), " of ", result_names_.size(),
                                                  " do not comply")));
    }
  }

  void CheckSeeds() {
    if (IsClosed() && report_.is_seed_check_bypassed)
      return Add("", Violation("R-PKG-015", "seed-checker-bypass"));
    for (SeedFinding& seed : seeds_.OfSet(IsClosed(), IsWeak()))
      Add(seed.file, std::move(seed.finding));
  }

  void CheckConvergence() {
    // Round 0.7 and facilities' rounds have no reference points.
    if (!IsClosed() || !rules_.data().is_mlperf) return;
    const rules::ConvergenceSubmission submission = rules::SubmissionOf(convergence_);
    const rules::ConvergenceVerdict verdict =
        rules::CheckConvergence(rules_, submission, rules::ReferenceMode::kPruned);
    if (!verdict.exception.empty()) return Add("", Violation("R-RCP-002", verdict.exception));
    report_.convergence = verdict.message;
    if (verdict.passed) {
      report_.normalization = verdict.scaling_factor();
    } else if (report_.is_rcp_check_bypassed && CanBeBypassed(verdict.message)) {
      Add("", Violation("R-PKG-016", absl::StrCat("rcp-bypass, and: ", verdict.message)));
    } else {
      Add("", Violation("R-RCP-001", RcpText(verdict)));
    }
  }

  static std::string RcpText(const rules::ConvergenceVerdict& verdict) {
    if (!verdict.reference.has_value()) return verdict.message;
    return absl::StrCat(verdict.message, "; mean of ", verdict.olympic_mean, " epochs, at least ",
                        verdict.reference->min_epochs, " at batch size ",
                        verdict.reference->batch_size);
  }

  void CheckScalingFile() {
    if (!folder_.scaling_json.has_value()) return;
    const absl::StatusOr<double> factor = ParseScalingFactor(*folder_.scaling_json);
    if (!factor.ok())
      return Add("scaling.json", Violation("R-PKG-018", std::string(factor.status().message())));
    if (report_.convergence.empty()) return;  // not judged, so nothing to compare with
    const double computed = report_.normalization.value_or(1);
    constexpr double kTolerance = 1e-9;
    if (std::abs(*factor - computed) > kTolerance * computed)
      Add("scaling.json", Violation("R-PKG-023", absl::StrFormat("%.12g", *factor),
                                    absl::StrFormat("scaling_factor %.12g", computed)));
  }

  void JudgePrunedRuns() {
    if (!folder_.pruned_files.empty() && rules_.data().scaling_folders && !IsWeak())
      Add("", Violation("R-PKG-013", "pruned_results in a strong folder"));
    for (const std::string& name : folder_.pruned_files) {
      const std::string below = absl::StrCat("pruned_results/", name);
      const absl::StatusOr<std::string> log =
          tree_.Read(JoinPath(place_.path, below), kLogBytesMax);
      RunReport run{.file_name = Printable(name)};
      if (log.ok()) {
        const rules::CheckResult result = rules::Check(*log, rules_);
        run.pass = result.pass;
        run.reached_target = result.facts.reached_target;
        run.run_ms = result.facts.run_ms();
        if (!run.pass)
          Add(below, Violation("R-PKG-012",
                               absl::StrCat(result.findings.size(),
                                            " findings, the first: ", result.findings.front().key,
                                            " ", result.findings.front().found)));
      } else {
        Add(below, Violation("R-PKG-012", "a file that cannot be read"));
      }
      report_.pruned.push_back(std::move(run));
    }
  }

  const TreeReader& tree_;
  const rules::RuleSet& rules_;
  const DirectoryPlace& place_;
  DirectoryReport report_;
  ResultFolder folder_;
  std::vector<std::string> result_names_;  // by path, files or not
  std::vector<std::pair<std::string, rules::Finding>> log_findings_;
  std::vector<rules::Finding> power_findings_;
  bool is_power_fatal_ = false;
  std::set<std::string> failed_runs_;  // without .txt
  SeedCheck seeds_;
  std::vector<rules::ConvergenceRun> convergence_;
  rules::Finding differs_;  // of the first log that says something else than the package
  std::string first_differing_;
  int differing_ = 0;
};

}  // namespace

CheckerParams ReadParams(const TreeReader& tree, const std::string& path, const std::string& label,
                         std::vector<PackageFinding>* findings) {
  const std::string file = JoinPath(path, kParamsFile);
  const PathKind kind = tree.KindOf(file);
  if (kind == PathKind::kMissing || kind == PathKind::kBrokenLink) return {};
  CheckerParams params;
  const absl::StatusOr<std::string> text = tree.Read(file, kSmallFileBytesMax);
  if (text.ok()) {
    params = ParseCheckerParams(*text);
  } else {
    params.findings.push_back(Violation("R-PKG-017", kind == PathKind::kFile
                                                         ? "a file that cannot be read"
                                                         : std::string(Describe(kind))));
  }
  for (const rules::Finding& finding : params.findings)
    findings->push_back({absl::StrCat(label, "/", kParamsFile), finding});
  return params;
}

DirectoryReport CheckDirectory(const TreeReader& tree, const rules::RuleSet& rules,
                               const DirectoryPlace& place) {
  return DirectoryCheck(tree, rules, place).Run();
}

}  // namespace assay::package
