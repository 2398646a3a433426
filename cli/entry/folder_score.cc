#include "cli/entry/folder_score.h"

#include <vector>

#include "absl/strings/str_cat.h"

#include "cli/rules/rule_sets.h"
#include "cli/terminal/resource_columns.h"
#include "common/client/folder_score_json.h"
#include "common/client/score_parts.h"
#include "common/package/set_score.h"
#include "common/status.h"

namespace assay::cli {
namespace {

using package::ResultFolder;
using package::SetScore;

std::vector<Column> FolderColumns() {
  return {{"ORG", "organization", Format::kText, 3},
          {"SYSTEM", "system"},
          {"BENCHMARK", "benchmark"},
          {"DIVISION", "division", Format::kText, 2},
          {"SCALING", "scaling", Format::kText, 4},
          {"SCORE", "score_minutes", Format::kMinutes},
          {"RUNS", "run_count", Format::kNumber},
          {"PASS", "pass_count", Format::kNumber},
          {"MODELS/MIN", "models_per_minute", Format::kNumber, 8},
          {"TIME TO ALL", "time_to_all_minutes", Format::kMinutes, 9},
          {"RCP", "rcp_word", Format::kText, 5},
          {"NOTE", "note", Format::kText, 1}};
}

absl::Status ShowOne(Context* context, const SetScore& set, const rules::RuleSet& rule_set) {
  Json value = client::FolderScoreJson(set);
  value["rules_digest"] = rule_set.digest();
  if (set.interval) value["interval_text"] = client::IntervalText(*set.interval);
  if (set.official) {
    const rules::ConvergenceVerdict& verdict = set.official->pruned;
    value["rcp_text"] = verdict.exception.empty()
                            ? absl::StrCat(rules::SummaryWord(verdict), ": ", verdict.message)
                            : verdict.exception;
  }
  return context->printer().Show(
      {.schema = "assay.folder_score/v2",
       .value = value,
       .fields = {{"organization", "organization"},
                  {"system", "system"},
                  {"benchmark", "benchmark"},
                  {"division", "division"},
                  {"score", "score_minutes", Format::kMinutes},
                  {"interval", "interval_text"},
                  {"models/min", "models_per_minute", Format::kNumber},
                  {"models", "model_count"},
                  {"pruned", "runs_pruned"},
                  {"instance", "instance_scale"},
                  {"time to all", "time_to_all_minutes", Format::kMinutes},
                  {"RCP", "rcp_text"},
                  {"note", "note"},
                  {"rules", "round"},
                  {"digest", "rules_digest", Format::kDigest}},
       .sections = {{"Runs", "run_details", RunScoreColumns()}}});
}

}  // namespace

absl::StatusOr<ExitStatus> ScoreFolders(Context* context, const std::string& round,
                                        const std::string& directory) {
  ASSIGN_OR_RETURN(const RuleSetRef rule_set, LoadRuleSet(context->env(), round));
  ASSIGN_OR_RETURN(const std::vector<ResultFolder> folders, package::FindResultFolders(directory));
  if (folders.empty())
    return absl::NotFoundError(
        absl::StrCat(directory, " holds no result_*.txt files, at any depth"));
  ListView view{.schema = "assay.folder_score/v2", .columns = FolderColumns()};
  ProgressLine progress(context);
  bool is_all_scored = true;
  for (const ResultFolder& folder : folders) {
    progress.Draw(absl::StrCat("judging ", folder.source_path));
    ASSIGN_OR_RETURN(const SetScore set, package::ScoreFolder(folder, *rule_set));
    is_all_scored = is_all_scored && set.is_scored();
    if (folders.size() == 1 && !context->printer().IsStructured()) {
      progress.Clear();
      RETURN_IF_ERROR(ShowOne(context, set, *rule_set));
      return is_all_scored ? ExitStatus::kDone : ExitStatus::kFailed;
    }
    view.items.push_back(client::FolderScoreJson(set));
  }
  progress.Clear();
  RETURN_IF_ERROR(context->printer().List(view));
  return is_all_scored ? ExitStatus::kDone : ExitStatus::kFailed;
}

}  // namespace assay::cli
