#include "cli/entry/entry_file.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "cli/command/context.h"
#include "cli/entry/submission_file.h"
#include "cli/entry/submit.h"
#include "cli/rules/hyperparameters.h"
#include "cli/rules/rule_sets.h"
#include "common/client/comparison.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/file.h"
#include "common/rpc/finding_proto.h"
#include "common/status.h"

namespace assay::cli {
namespace {

// What the rules of its round say of the file alone. Where it does not say how many runs, they are
// as many as the round demands.
std::vector<v1::Finding> JudgeFile(const rules::RuleSet& rules, const v1::SubmissionSpec& spec) {
  std::vector<rules::Finding> findings = rules::CheckHyperparameters(
      rules, spec.benchmark(), spec.division(), HyperparametersOf(spec));
  if (spec.run_count() > 0) {
    std::vector<rules::Finding> counts =
        spec.metric() == "throughput"
            ? rules::CheckInstanceCount(rules, spec.benchmark(), spec.run_count())
            : rules::CheckRunCount(rules, spec.benchmark(), spec.run_count());
    std::move(counts.begin(), counts.end(), std::back_inserter(findings));
  }
  std::vector<v1::Finding> messages;
  for (const rules::Finding& finding : findings)
    messages.push_back(FindingToProto(finding));
  return messages;
}

Json ValidationJson(const SubmissionFile& file, const std::vector<v1::Finding>& findings) {
  Json json = {{"file", file.path},
               {"round", file.spec.round()},
               {"benchmark", file.spec.benchmark()},
               {"division", file.spec.division()},
               {"findings", Json::array()}};
  for (const v1::Finding& finding : findings) {
    Json item = client::FindingJson(finding);
    const Position at = DiagnosticFor(file, finding).at;
    if (at.line > 0) item.update({{"line", at.line}, {"column", at.column}});
    json["findings"].push_back(std::move(item));
  }
  return json;
}

absl::StatusOr<ExitStatus> RunValidate(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const SubmissionFile file, LoadSubmissionFile(*context, arguments.Get("FILE")));
  if (!file.problems.empty()) {
    PrintDiagnostics(*context, file, file.problems);
    return ExitStatus::kUsage;
  }
  const std::string round = arguments.Has("round") ? arguments.Get("round") : file.spec.round();
  ASSIGN_OR_RETURN(const RuleSetRef rules, LoadRuleSet(context->env(), round));
  const std::vector<v1::Finding> findings = JudgeFile(*rules, file.spec);
  std::vector<Diagnostic> diagnostics;
  for (const v1::Finding& finding : findings)
    diagnostics.push_back(DiagnosticFor(file, finding));
  const bool has_error = std::any_of(findings.begin(), findings.end(), [](const v1::Finding& f) {
    return f.severity() != v1::Finding::WARNING;
  });
  Json json = ValidationJson(file, findings);
  json["is_sound"] = !has_error;
  RETURN_IF_ERROR(context->printer().Show({.schema = "assay.validation/v1",
                                           .value = std::move(json),
                                           .fields = {{"file", "file"},
                                                      {"benchmark", "benchmark"},
                                                      {"division", "division"},
                                                      {"round", "round"},
                                                      {"sound", "is_sound", Format::kYesNo}}}));
  if (!context->printer().IsJson()) PrintDiagnostics(*context, file, diagnostics);
  if (has_error) return ExitStatus::kRuleViolation;
  context->Note(
      absl::StrCat("dataset, nodes and borrowing are the coordinator's to judge: assay "
                   "plan ",
                   file.path));
  return ExitStatus::kDone;
}

bool IsEntryId(const std::string& word) {
  return word == "@last" ||
         ((absl::StartsWith(word, "e-") || absl::StartsWith(word, "s-")) && word.size() > 2 &&
          std::all_of(word.begin() + 2, word.end(), [](char c) { return c >= '0' && c <= '9'; }));
}

// What was submitted under an id, or would be by a file: with the defaults that the coordinator
// fills in.
absl::StatusOr<Json> SubmittedJson(Context* context, const client::Client& client,
                                   const std::string& which) {
  v1::Submission submitted;
  if (IsEntryId(which)) {
    ASSIGN_OR_RETURN(const v1::Submission entry, client::GetEntry(client, which));
    *submitted.mutable_spec() = entry.spec();
  } else {
    ASSIGN_OR_RETURN(const SubmissionFile file, LoadSubmissionFile(*context, which));
    if (!file.problems.empty()) {
      PrintDiagnostics(*context, file, file.problems);
      return absl::InvalidArgumentError(absl::StrCat(which, " is no sound submission file"));
    }
    v1::PlanSubmissionRequest request;
    *request.mutable_spec() = file.spec;
    ASSIGN_OR_RETURN(const v1::PlanSubmissionResponse plan, client.CallRetrying(request));
    *submitted.mutable_spec() = plan.spec();
  }
  Json json = client::EntryJson(submitted);
  json["run_count"] = submitted.spec().run_count();
  for (const char* unknown : {"id", "set", "state"})
    json.erase(unknown);
  return json;
}

absl::StatusOr<ExitStatus> RunDiff(Context* context, const Arguments& arguments) {
  const std::vector<std::string> names = {arguments.Get("A"), arguments.Get("B")};
  if (names[0] == names[1])
    return absl::InvalidArgumentError(absl::StrCat("diff: ", names[0], " is given twice"));
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  std::vector<Json> submitted;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(Json json, SubmittedJson(context, *client, name));
    submitted.push_back(std::move(json));
  }
  // A file's name may hold what a column's name may not.
  const std::vector<std::string> sides = {"a", "b"};
  ListView view{.schema = "assay.difference/v1",
                .items = client::CompareResources(sides, submitted, /*is_all=*/false),
                .columns = {{"FIELD", "field"}, {names[0], "a"}, {names[1], "b"}},
                .empty_text = "no differences",
                .more = {{"a", names[0]}, {"b", names[1]}}};
  for (Json& row : view.items)
    for (const char* judged : {"ratio", "direction", "differs"})
      row.erase(judged);
  RETURN_IF_ERROR(context->printer().List(view));
  return view.items.empty() ? ExitStatus::kDone : ExitStatus::kDifferent;
}

}  // namespace

std::vector<Command> EntryFileCommands() {
  const auto side = [](const char* name, const char* help) {
    return Positional{.name = name, .help = help, .completes = Completes::kEntryOrDirectory};
  };
  return {
      {.path = "entry validate",
       .summary = "judge a submission file on this host, without a coordinator",
       .description =
           "Reads the file and says, with line and column, what is wrong in it and what the rules "
           "of its round say of its values. What only the coordinator knows, datasets, nodes and "
           "other entries, 'assay plan' judges as well.",
       .positionals = {{.name = "FILE",
                        .help = "submission file (TOML)",
                        .completes = Completes::kFile}},
       .options = {{.name = "round",
                    .kind = Option::Kind::kText,
                    .value = "ROUND",
                    .help = "judge by this round, as a facility's .toml file, not by the file's",
                    .completes = Completes::kRound}},
       .examples = {{"assay entry validate entry.toml", "exit 3 if a rule would refuse it"},
                    {"assay entry validate entry.toml --round site.toml", ""}},
       .run = RunValidate},
      {.path = "entry diff",
       .summary = "what differs between what two entries submitted, or a file would",
       .description =
           "Only what submitters say: system, dataset, nodes, hyperparameters, workload. Of a "
           "file with the defaults that the coordinator would fill in. Exit 10 if anything "
           "differs. How results differ, 'assay compare' tells.",
       .positionals = {side("A", "e-42, s-42, @last or a submission file"), side("B", "the other")},
       .examples = {{"assay entry diff e-42 e-43", ""},
                    {"assay entry diff entry.toml e-42", "what has changed since"}},
       .run = RunDiff}};
}

}  // namespace assay::cli
