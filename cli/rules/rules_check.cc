#include "cli/rules/rules_check.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

#include "cli/command/context.h"
#include "cli/rules/log_files.h"
#include "cli/rules/rule_sets.h"
#include "common/rules/registry.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr char kSchema[] = "assay.check/v1";

bool IsError(const rules::Finding& finding) {
  return finding.severity == rules::Severity::kError;
}

Json FindingItem(const rules::Finding& finding) {
  return {{"rule", finding.rule_id},
          {"severity", std::string(rules::SeverityName(finding.severity))},
          {"class", finding.error_class},
          {"line", finding.line},
          {"key", finding.key},
          {"expected", finding.expected},
          {"found", finding.found},
          {"section", finding.section},
          {"remedy", finding.remedy}};
}

Json LogItem(const LogFile& file, const JudgedLog& judged) {
  std::set<std::string> errors, warnings;
  Json findings = Json::array();
  for (const rules::Finding& finding : judged.result.findings) {
    findings.push_back(FindingItem(finding));
    if (IsError(finding)) {
      errors.insert(finding.error_class);
    } else {
      warnings.insert(finding.key);
    }
  }
  Json item = {{"path", file.shown}};
  item["sha256"] = judged.is_readable() ? Json(judged.sha256) : Json();
  item["round"] = judged.result.rule_set;
  item["rules_digest"] = judged.result.digest;
  item["verdict"] = judged.result.pass ? "pass" : "fail";
  item["errors"] = errors;
  item["warnings"] = warnings;
  item["error_count"] = errors.size();
  item["warning_count"] = warnings.size();
  item["findings"] = std::move(findings);
  return item;
}

// Prints verdicts as they come, and remembers what the whole amounts to.
class VerdictPrinter {
 public:
  explicit VerdictPrinter(Context* context) : context_(context) {}

  void Add(const LogFile& file, const JudgedLog& judged) {
    ++file_count_;
    pass_count_ += judged.result.pass;
    is_all_readable_ = is_all_readable_ && judged.is_readable();
    if (context_->printer().IsJson()) {
      const bool is_repeated_list = AsksForFields() && file_count_ > 1;
      if (status_.ok() && !is_repeated_list)
        status_ = context_->printer().Item(kSchema, LogItem(file, judged));
    } else if (IsCsv()) {
      rows_.push_back(LogItem(file, judged));
    } else {
      PrintText(file, judged);
    }
  }

  absl::StatusOr<ExitStatus> Finish(const rules::RuleSet& rules) const {
    RETURN_IF_ERROR(status_);
    const bool is_all_pass = pass_count_ == file_count_;
    if (IsCsv()) {
      RETURN_IF_ERROR(context_->printer().List({.schema = kSchema,
                                                .items = rows_,
                                                .columns = {{"PATH", "path"},
                                                            {"SHA256", "sha256"},
                                                            {"VERDICT", "verdict"},
                                                            {"ERRORS", "errors"},
                                                            {"WARNINGS", "warnings"}}}));
    } else if (!context_->printer().IsJson()) {
      context_->out() << context_->style().Mark(is_all_pass ? Tone::kGood : Tone::kBad) << " "
                      << pass_count_ << " of " << file_count_ << " pass " << rules.name()
                      << " (rules sha256:" << rules.digest() << ")\n";
    }
    if (!is_all_readable_) return ExitStatus::kFailed;
    return is_all_pass ? ExitStatus::kDone : ExitStatus::kRuleViolation;
  }

 private:
  bool IsCsv() const { return context_->printer().options().output == PrintOptions::Output::kCsv; }

  bool AsksForFields() const { return context_->printer().options().json_fields == "?"; }

  // As compilers write, so that editors find the place.
  void PrintText(const LogFile& file, const JudgedLog& judged) const {
    for (const rules::Finding& finding : judged.result.findings) {
      if (IsError(finding) || !context_->is_quiet())
        context_->out() << rules::Format(file.shown, finding) << "\n";
    }
    context_->out() << std::flush;
  }

  Context* const context_;
  Json rows_ = Json::array();
  int file_count_ = 0;
  int pass_count_ = 0;
  bool is_all_readable_ = true;
  absl::Status status_;
};

// The built-in rounds as --ruleset has them: "3.0.0" for hpc-3.0.0.
std::vector<std::string> BuiltInVersions() {
  std::vector<std::string> versions;
  for (const std::string& name : rules::BuiltInRoundNames())
    versions.emplace_back(absl::StripPrefix(name, "hpc-"));
  return versions;
}

absl::StatusOr<RuleSetRef> WantedRules(const Context& context, const Arguments& arguments) {
  const bool has_round = arguments.Has("round");
  if (has_round == arguments.Has("ruleset")) {
    return absl::InvalidArgumentError(
        absl::StrCat("name the rules to judge by, once: --ruleset with one of ",
                     absl::StrJoin(BuiltInVersions(), ", "),
                     ", or --round for a facility's round or a frozen pack"));
  }
  return LoadRuleSet(context.env(), arguments.Get(has_round ? "round" : "ruleset"),
                     arguments.Get("public-key"));
}

absl::StatusOr<ExitStatus> RunRulesCheck(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const RuleSetRef rule_set, WantedRules(*context, arguments));
  ASSIGN_OR_RETURN(const std::vector<LogFile> files,
                   FindLogFiles(context->env(), arguments.All("PATH")));
  VerdictPrinter verdicts(context);
  JudgeLogFiles(files, *rule_set, {.warnings_are_errors = arguments.Has("strict")},
                [&](const LogFile& file, const JudgedLog& judged) { verdicts.Add(file, judged); });
  return verdicts.Finish(*rule_set);
}

}  // namespace

std::vector<Command> RulesCheckCommands() {
  using Kind = Option::Kind;
  return {
      {.path = "rules check",
       .summary = "judge log files, without a coordinator",
       .description =
           "Judges files on all processors and prints findings as file:line: error RULE: ..., or "
           "with --json one object per log and line, in the order of the paths: path, sha256, "
           "verdict, errors, warnings and findings. Exits with 3 if a file fails and with 1 if one "
           "cannot be read.",
       .positionals = {{.name = "PATH",
                        .help = "log files, folders with result_*.txt at any depth, or - for stdin",
                        .is_repeated = true,
                        .completes = Completes::kFile}},
       .options = {{.name = "ruleset",
                    .kind = Kind::kChoice,
                    .value = "VERSION",
                    .help = "the rules of a built-in round",
                    .choices = BuiltInVersions()},
                   {.name = "round",
                    .kind = Kind::kText,
                    .value = "ROUND",
                    .help = "hpc-3.0.0, v1.0, ..., a facility round's .toml file, or a frozen "
                            "pack's .json file",
                    .completes = Completes::kRound},
                   PublicKeyOption(),
                   {.name = "strict", .help = "warnings are errors"}},
       .examples = {{"assay rules check --ruleset 3.0.0 result_*.txt", ""},
                    {"assay rules check --ruleset 1.0.0 --json hpc_results_v1.0 | jq -r .verdict",
                     "one verdict per line"}},
       .run = RunRulesCheck}};
}

}  // namespace assay::cli
