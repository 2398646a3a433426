#include "cli/package/package.h"

#include <algorithm>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "cli/command/context.h"
#include "cli/rules/rule_sets.h"
#include "common/package/findings.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr double kMsPerSecond = 1000;

const char* Verdict(bool pass) {
  return pass ? "ok" : "fail";
}

Json FindingsJson(std::span<const package::PackageFinding> findings) {
  Json array = Json::array();
  for (const package::PackageFinding& found : findings) {
    const rules::Finding& finding = found.finding;
    Json json = {{"rule", finding.rule_id},
                 {"severity", std::string(rules::SeverityName(finding.severity))},
                 {"class", finding.error_class},
                 {"path", found.path}};
    if (finding.line > 0) json["line"] = finding.line;
    if (!finding.key.empty()) json["key"] = finding.key;
    json["expected"] = finding.expected;
    json["found"] = finding.found;
    if (!finding.section.empty()) json["section"] = finding.section;
    if (!finding.remedy.empty()) json["remedy"] = finding.remedy;
    array.push_back(std::move(json));
  }
  return array;
}

Json RunsJson(const std::vector<package::RunReport>& runs) {
  Json array = Json::array();
  for (const package::RunReport& run : runs) {
    Json json = {
        {"file", run.file_name}, {"verdict", Verdict(run.pass)}, {"converged", run.reached_target}};
    if (run.run_ms.has_value()) json["seconds"] = *run.run_ms / kMsPerSecond;
    array.push_back(std::move(json));
  }
  return array;
}

Json DirectoryJson(const package::DirectoryReport& directory) {
  const int errors = package::CountErrors(directory.findings);
  Json json = {{"path", directory.path}, {"system", directory.system}};
  if (!directory.scaling.empty()) json["scaling"] = directory.scaling;
  json["benchmark"] = directory.benchmark;
  if (!directory.division.empty()) json["division"] = directory.division;
  json["verdict"] = directory.is_skipped && errors == 0 ? "skipped" : Verdict(errors == 0);
  json["errors"] = errors;
  json["warnings"] = static_cast<int>(directory.findings.size()) - errors;
  json["runs_required"] = directory.runs_required;
  json["run_count"] = directory.runs.size();
  json["runs"] = RunsJson(directory.runs);
  if (!directory.pruned.empty()) json["pruned_runs"] = RunsJson(directory.pruned);
  if (!directory.convergence.empty()) json["convergence"] = directory.convergence;
  if (directory.normalization.has_value()) json["normalization"] = *directory.normalization;
  json["findings"] = FindingsJson(directory.findings);
  return json;
}

class TextReport {
 public:
  TextReport(const Context* context, const rules::RuleSet* rule_set)
      : context_(context), rule_set_(rule_set) {}

  void Print(const package::OrganizationReport& report) const {
    PrintFindings(report.findings);
    for (const package::DirectoryReport& directory : report.directories)
      PrintFindings(directory.findings);
    PrintFindings(report.repository.findings);
    const size_t repository = report.repository.findings.size();
    context_->out() << context_->style().Mark(report.pass() ? Tone::kGood : Tone::kBad) << " "
                    << report.organization << ": " << Count(report.directories.size(), "directory")
                    << ", " << Count(static_cast<size_t>(report.run_count()), "run") << ", "
                    << Count(static_cast<size_t>(report.error_count()), "error") << ", "
                    << Count(static_cast<size_t>(report.warning_count()) + repository, "warning")
                    << " (" << rule_set_->name() << ", rules "
                    << rule_set_->digest().substr(0, kDigestShown) << ")\n";
  }

 private:
  static constexpr size_t kDigestShown = 12;

  static std::string Count(size_t count, absl::string_view noun) {
    if (count == 1) return absl::StrCat("1 ", noun);
    return noun == "directory" ? absl::StrCat(count, " directories")
                               : absl::StrCat(count, " ", noun, "s");
  }

  void PrintFindings(std::span<const package::PackageFinding> findings) const {
    for (const package::PackageFinding& found : findings) {
      const bool is_error = found.finding.severity == rules::Severity::kError;
      if (is_error || !context_->is_quiet())
        context_->out() << rules::Format(found.path, found.finding) << "\n";
    }
  }

  const Context* const context_;
  const rules::RuleSet* const rule_set_;
};

bool WantsText(const Printer& printer) {
  const PrintOptions::Output output = printer.options().output;
  return output == PrintOptions::Output::kTable || output == PrintOptions::Output::kWide ||
         output == PrintOptions::Output::kPlain;
}

absl::StatusOr<ExitStatus> RunPackageCheck(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const RuleSetRef rule_set, LoadRuleSet(context->env(), arguments.Get("round")));
  ProgressLine progress(context);
  const package::PackageOptions options = {
      .bypasses_rcp = arguments.Has("rcp-bypass"),
      .bypasses_seeds = arguments.Has("seed-checker-bypass"),
      .progress = [&](absl::string_view path) { progress.Draw(absl::StrCat("judging ", path)); }};
  ASSIGN_OR_RETURN(const std::vector<package::OrganizationReport> reports,
                   package::CheckPackages(context->env().AbsolutePath(arguments.Get("DIR")),
                                          *rule_set, options));
  progress.Clear();
  const bool is_all_good =
      std::all_of(reports.begin(), reports.end(),
                  [](const package::OrganizationReport& report) { return report.pass(); });
  if (WantsText(context->printer())) {
    for (const package::OrganizationReport& report : reports)
      TextReport(context, rule_set.get()).Print(report);
  } else {
    ListView view{.schema = "assay.package_check/v1",
                  .columns = {{"ORG", "org"},
                              {"VERDICT", "verdict", Format::kState},
                              {"ERRORS", "errors", Format::kNumber},
                              {"WARNINGS", "warnings", Format::kNumber},
                              {"RUNS", "run_count", Format::kNumber}}};
    for (const package::OrganizationReport& report : reports) {
      Json item = PackageJson(report);
      item["round"] = rule_set->name();
      item["rules_digest"] = rule_set->digest();
      view.items.push_back(std::move(item));
    }
    RETURN_IF_ERROR(context->printer().List(view));
  }
  return is_all_good ? ExitStatus::kDone : ExitStatus::kRuleViolation;
}

}  // namespace

Json PackageJson(const package::OrganizationReport& report) {
  Json json = {{"id", report.organization},
               {"org", report.organization},
               {"verdict", Verdict(report.pass())},
               {"errors", report.error_count()},
               {"warnings", report.warning_count()},
               {"run_count", report.run_count()},
               {"findings", FindingsJson(report.findings)}};
  json["directories"] = Json::array();
  for (const package::DirectoryReport& directory : report.directories)
    json["directories"].push_back(DirectoryJson(directory));
  json["repository"] = {{"verdict", Verdict(report.repository.pass())},
                        {"names_ok", report.repository.are_names_ok},
                        {"sizes_ok", report.repository.are_sizes_ok},
                        {"links_ok", report.repository.are_links_ok},
                        {"file_count", report.repository.file_count},
                        {"findings", FindingsJson(report.repository.findings)}};
  return json;
}

std::vector<Command> PackageCommands() {
  return {{.path = "package check",
           .summary = "check a submission package, without a coordinator",
           .description =
               "Judges what an organisation hands in as the official package checker does: "
               "layout, system descriptions, number of runs, every log, power, seeds and "
               "convergence, with the same verdict. Findings are printed as file:line: error "
               "RULE: ..., with a line for each organisation at the end; exits with 3 if one "
               "fails.",
           .positionals = {{.name = "DIR",
                            .help = "a results repository, or the folder of one organisation",
                            .completes = Completes::kDirectory}},
           .options = {{.name = "round",
                        .kind = Option::Kind::kText,
                        .value = "ROUND",
                        .help = "hpc-1.0, hpc-2.0, hpc-3.0, or v0.7",
                        .is_required = true,
                        .completes = Completes::kRound},
                       {.name = "rcp-bypass",
                        .help = "as if every folder asked to bypass the convergence check"},
                       {.name = "seed-checker-bypass",
                        .help = "as if every folder asked to bypass the seed check"}},
           .examples = {{"assay package check --round hpc-3.0 package/ORG", "before handing it in"},
                        {"assay package check --round v1.0 hpc_results_v1.0 --json", ""}},
           .run = RunPackageCheck}};
}

}  // namespace assay::cli
