#include "cli/score.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "cli/entry.h"
#include "cli/ids.h"
#include "cli/resource_json.h"
#include "cli/rule_sets.h"

#include "common/rules/registry.h"
#include "common/rules/score.h"
#include "common/status.h"

namespace assay::cli {
namespace {

// What became of run `index` in the score.
struct Part {
  std::string text;
  bool counts = false;
};

// The slowest and the fastest are what was neither counted nor dropped for failing.
std::vector<Part> PartsOf(const std::vector<rules::RunScore>& runs,
                          const rules::TimeToSolution& score) {
  std::vector<Part> parts(runs.size());
  double least_counted = INFINITY;
  for (const int index : score.counted) {
    parts[static_cast<size_t>(index)] = {"counts", true};
    least_counted = std::min(least_counted, runs[static_cast<size_t>(index)].run_ms.value_or(0));
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    if (parts[i].counts) continue;
    if (!runs[i].run_ms.has_value()) {
      parts[i].text = "no time";
    } else if (!score.minutes.has_value()) {
      parts[i].text = runs[i].compliant ? "passes" : "fails";
    } else if (*runs[i].run_ms <= least_counted && runs[i].compliant) {
      parts[i].text = "dropped: fastest";
    } else {
      parts[i].text =
          runs[i].compliant || runs[i].reached_target
              ? (*runs[i].run_ms <= least_counted ? "dropped: fastest" : "dropped: slowest")
              : "dropped: did not converge";
    }
  }
  return parts;
}

rules::RunScore RunScoreOf(const v1::Run& run) {
  rules::RunScore score;
  score.compliant = run.is_compliant() && run.state() == v1::Run::SUCCEEDED;
  score.reached_target = run.is_converged();
  if (run.has_run_start_ms() && run.has_run_stop_ms())
    score.run_ms = static_cast<double>(run.run_stop_ms() - run.run_start_ms());
  return score;
}

rules::TimeToSolution Olympic(const std::string& round, const std::vector<rules::RunScore>& runs) {
  const rules::RuleSet* rule_set = rules::FindRuleSet(round);
  return rule_set == nullptr ? rules::OlympicScore(runs) : rules::Score(*rule_set, runs);
}

const std::vector<Column>& RunScoreColumns() {
  static const auto* const kColumns =
      new std::vector<Column>{{"RUN", "id"},
                              {"TIME", "seconds", Format::kSeconds},
                              {"MINUTES", "minutes", Format::kMinutes, 4},
                              {"CONVERGED", "converged", Format::kYesNo, 1},
                              {"RULES", "verdict", Format::kState, 2},
                              {"QUALITY", "quality", Format::kNumber, 3},
                              {"EPOCHS", "epochs", Format::kNumber, 5},
                              {"TOUCH AFTER START", "touch", Format::kText, 6},
                              {"IN THE SCORE", "part"}};
  return *kColumns;
}

std::string TouchText(const v1::Run& run) {
  if (!run.has_first_touch_us() || !run.has_run_start_ms()) return "";
  const double after_ms =
      static_cast<double>(run.first_touch_us()) / 1000.0 - static_cast<double>(run.run_start_ms());
  return absl::StrFormat("%+.1f ms", after_ms);
}

// ------------------------------------------------------------------------------------ of entries

absl::StatusOr<ExitStatus> ScoreEntry(Context* context, const std::string& id) {
  ASSIGN_OR_RETURN(const Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::Submission entry, GetEntry(*client, id));
  ASSIGN_OR_RETURN(const std::vector<v1::Run> runs, AllRunsOf(*client, entry.name()));
  RETURN_IF_ERROR(PrintScore(context, entry, runs));
  if (!IsEnded(entry.state())) return ExitStatus::kStillRunning;
  return entry.state() == v1::Submission::VALID ? ExitStatus::kDone : ExitStatus::kFailed;
}

std::vector<Column> ScoreListColumns() {
  return {{"ORG", "organization"},
          {"SYSTEM", "system"},
          {"BENCHMARK", "benchmark"},
          {"DIVISION", "division", Format::kText, 2},
          {"ROUND", "round", Format::kText, 4},
          {"SCALING", "scaling", Format::kText, 1},
          {"SCORE", "score_minutes", Format::kMinutes},
          {"RUNS", "run_count", Format::kNumber, 3},
          {"STATE", "state", Format::kState, 3},
          {"ENTRY", "id", Format::kText, 1}};
}

absl::StatusOr<ExitStatus> ScoreAll(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Client* client, context->Connect());
  v1::ListSubmissionsRequest request;
  request.set_round(CanonicalRound(arguments.Get("round")));
  request.set_benchmark(arguments.Get("benchmark"));
  constexpr int64_t kEntriesMax = 10'000;
  ASSIGN_OR_RETURN(std::vector<v1::Submission> entries, ListEntries(*client, request, kEntriesMax));
  const auto key = [](const v1::Submission& entry) {
    const v1::SubmissionSpec& spec = entry.spec();
    // Entries without a score come after those with one.
    return std::make_tuple(spec.round(), spec.benchmark(), entry.scaling(), spec.division(),
                           entry.has_score_minutes() ? entry.score_minutes() : INFINITY,
                           spec.system());
  };
  std::sort(entries.begin(), entries.end(),
            [&](const v1::Submission& a, const v1::Submission& b) { return key(a) < key(b); });
  ListView view{.schema = "assay.entry/v1",
                .columns = ScoreListColumns(),
                .empty_text = "no entries; 'assay submit FILE' or 'assay import DIR' makes some"};
  for (const v1::Submission& entry : entries)
    view.items.push_back(EntryJson(entry));
  RETURN_IF_ERROR(context->printer().List(view));
  return ExitStatus::kDone;
}

// ------------------------------------------------------------------------------------ of folders

absl::StatusOr<ExitStatus> ScoreFolder(Context* context, const Arguments& arguments,
                                       const std::string& directory) {
  ASSIGN_OR_RETURN(const RuleSetRef rule_set, LoadRuleSet(context->env(), arguments.Get("round")));
  ASSIGN_OR_RETURN(const std::vector<package::ResultFolder> folders,
                   package::FindResultFolders(directory));
  if (folders.empty())
    return absl::NotFoundError(
        absl::StrCat(directory, " holds no result_*.txt files, at any depth"));
  ListView view{.schema = "assay.folder_score/v1",
                .columns = {{"ORG", "organization", Format::kText, 3},
                            {"SYSTEM", "system"},
                            {"BENCHMARK", "benchmark"},
                            {"DIVISION", "division", Format::kText, 2},
                            {"SCALING", "scaling", Format::kText, 4},
                            {"SCORE", "score_minutes", Format::kMinutes},
                            {"RUNS", "run_count", Format::kNumber},
                            {"PASS", "pass_count", Format::kNumber},
                            {"MODELS", "model_count", Format::kNumber, 9},
                            {"TIME TO ALL", "time_to_all_minutes", Format::kMinutes, 9},
                            {"NOTE", "note", Format::kText, 1}}};
  ProgressLine progress(context);
  bool is_all_scored = true;
  std::vector<package::JudgedFolder> judged;
  for (const package::ResultFolder& folder : folders) {
    progress.Draw(absl::StrCat("judging ", folder.source_path));
    ASSIGN_OR_RETURN(package::JudgedFolder result, package::JudgeFolder(folder, *rule_set));
    view.items.push_back(FolderScoreJson(result));
    is_all_scored = is_all_scored && (result.score.minutes.has_value() || folder.scaling == "weak");
    result.DropLogs();
    judged.push_back(std::move(result));
  }
  progress.Clear();
  if (folders.size() == 1 && !context->printer().IsStructured()) {
    Json value = view.items[0];
    value["rules_digest"] = rule_set->digest();
    RETURN_IF_ERROR(
        context->printer().Show({.schema = "assay.folder_score/v1",
                                 .value = value,
                                 .fields = {{"organization", "organization"},
                                            {"system", "system"},
                                            {"benchmark", "benchmark"},
                                            {"division", "division"},
                                            {"score", "score_minutes", Format::kMinutes},
                                            {"note", "note"},
                                            {"rules", "round"},
                                            {"digest", "rules_digest", Format::kDigest}},
                                 .sections = {{"Runs", "runs", RunScoreColumns()}}}));
  } else {
    RETURN_IF_ERROR(context->printer().List(view));
  }
  return is_all_scored ? ExitStatus::kDone : ExitStatus::kFailed;
}

bool IsDirectory(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

absl::StatusOr<ExitStatus> RunScore(Context* context, const Arguments& arguments) {
  const std::string what = arguments.Get("ID_OR_DIR");
  if (what.empty()) return ScoreAll(context, arguments);
  const std::string directory = context->env().AbsolutePath(what);
  if (what[0] != '@' && IsDirectory(directory)) {
    if (!arguments.Has("round"))
      return absl::InvalidArgumentError(
          "which rules judge a folder? say so with --round ('assay rules list')");
    return ScoreFolder(context, arguments, directory);
  }
  if (absl::StrContains(what, "/") && !absl::StartsWith(what, "submissions/"))
    return absl::NotFoundError(absl::StrCat("there is no folder ", what));
  return ScoreEntry(context, what);
}

}  // namespace

Json FolderScoreJson(const package::JudgedFolder& judged) {
  const package::ResultFolder& folder = judged.folder;
  Json json = {{"organization", folder.organization},
               {"system", folder.system},
               {"benchmark", folder.benchmark}};
  if (!judged.division().empty()) json["division"] = judged.division();
  if (!folder.scaling.empty()) json["scaling"] = folder.scaling;
  json["round"] = judged.rule_set;
  json["source_path"] = folder.source_path;
  if (judged.score.minutes.has_value()) json["score_minutes"] = *judged.score.minutes;
  json["run_count"] = judged.runs.size();
  json["pass_count"] = std::count_if(judged.runs.begin(), judged.runs.end(),
                                     [](const package::JudgedRun& run) { return run.result.pass; });
  if (judged.model_count > 0) json["model_count"] = judged.model_count;
  if (judged.time_to_all_minutes.has_value())
    json["time_to_all_minutes"] = *judged.time_to_all_minutes;
  if (!judged.score.reason.empty()) json["note"] = judged.score.reason;
  std::vector<rules::RunScore> scores;
  for (const package::JudgedRun& run : judged.runs)
    scores.push_back(rules::ScoreOf(run.result));
  const std::vector<Part> parts = PartsOf(scores, judged.score);
  json["runs"] = Json::array();
  for (size_t i = 0; i < judged.runs.size(); ++i) {
    const rules::Facts& facts = judged.runs[i].result.facts;
    Json run = {{"id", std::string(absl::StripSuffix(judged.runs[i].file_name, ".txt"))},
                {"converged", facts.reached_target},
                {"verdict", judged.runs[i].result.pass ? "ok" : "fail"},
                {"part", parts[i].text}};
    if (const auto run_ms = facts.run_ms(); run_ms.has_value()) {
      run["seconds"] = *run_ms / 1000.0;
      run["minutes"] = *run_ms / 60000.0;
    }
    if (facts.quality.has_value()) run["quality"] = *facts.quality;
    run["epochs"] = facts.epochs;
    json["runs"].push_back(run);
  }
  return json;
}

Json ScoreJson(const v1::Submission& entry, const std::vector<v1::Run>& runs) {
  Json json = EntryJson(entry);
  for (const char* unused : {"hyperparameters", "labels", "runs", "submitter"})
    json.erase(unused);
  std::vector<rules::RunScore> scores;
  for (const v1::Run& run : runs)
    scores.push_back(RunScoreOf(run));
  const rules::TimeToSolution olympic = Olympic(entry.spec().round(), scores);
  const std::vector<Part> parts = PartsOf(scores, olympic);
  json["score_label"] = entry.is_mlperf_result() || entry.is_imported()
                            ? "MLPerf HPC rules"
                            : "not an MLPerf result: a facility's own round";
  json["run_details"] = Json::array();
  for (size_t i = 0; i < runs.size(); ++i) {
    Json run = RunJson(runs[i]);
    Json row = {{"id", run["id"]}};
    for (const char* field : {"number", "state", "seconds", "converged", "quality", "epochs",
                              "touch_after_run_start_ms"})
      if (run.contains(field)) row[field] = run[field];
    if (run.contains("seconds")) row["minutes"] = run["seconds"].get<double>() / 60.0;
    if (run.contains("compliant")) row["verdict"] = run["compliant"].get<bool>() ? "ok" : "fail";
    const std::string touch = TouchText(runs[i]);
    if (!touch.empty()) row["touch"] = touch;
    row["part"] = IsEnded(runs[i].state()) ? parts[i].text : StateText(runs[i].state());
    json["run_details"].push_back(row);
  }
  return json;
}

absl::Status PrintScore(Context* context, const v1::Submission& entry,
                        const std::vector<v1::Run>& runs) {
  ShowView view{.schema = "assay.score/v1",
                .value = ScoreJson(entry, runs),
                .fields = {{"entry", "id"},
                           {"state", "state", Format::kState},
                           {"reason", "state_reason"},
                           {"system", "system"},
                           {"benchmark", "benchmark"},
                           {"division", "division"},
                           {"round", "round"},
                           {"score", "score_text"},
                           {"label", "score_label"},
                           {"rules", "rules_digest", Format::kDigest}},
                .sections = {{"Runs", "run_details", RunScoreColumns()},
                             {"Findings", "findings", FindingColumns()}}};
  if (context->printer().IsStructured()) {
    for (Column& field : view.fields)
      if (field.field == "score_text") field.field = "score_minutes";
  } else if (entry.has_score_minutes()) {
    const double minutes = entry.score_minutes();
    view.value["score_text"] =
        minutes < 2 ? absl::StrFormat("%.2f s (%.4f min), olympic mean", minutes * 60, minutes)
                    : absl::StrFormat("%.2f min, olympic mean", minutes);
  }
  return context->printer().Show(view);
}

std::string RunSummaryLine(const Printer& printer, const v1::Run& run) {
  std::string line = absl::StrFormat("  %-6s ", ShortId(run.name()));
  const bool is_good = run.state() == v1::Run::SUCCEEDED && run.is_converged();
  const Style& style = printer.style();
  if (run.state() != v1::Run::SUCCEEDED) {
    absl::StrAppend(&line, style.Mark(Tone::kBad), " ", StateText(run.state()), "  ",
                    run.state_reason());
    return line;
  }
  absl::StrAppend(&line, style.Mark(is_good ? Tone::kGood : Tone::kBad), " ",
                  is_good ? "converged" : "not converged");
  if (const auto seconds = TimeToSolutionSeconds(run); seconds.has_value())
    absl::StrAppend(&line, "  ", printer.FormatField(*seconds, Format::kSeconds));
  if (run.has_quality())
    absl::StrAppend(&line, "  quality ", printer.FormatField(run.quality(), Format::kNumber));
  if (run.has_epoch_count()) absl::StrAppend(&line, "  ", run.epoch_count(), " epochs");
  const std::string touch = TouchText(run);
  if (!touch.empty()) {
    const bool is_after = !absl::StartsWith(touch, "-");
    absl::StrAppend(&line, "  first touch ", touch, " after run_start ",
                    style.Mark(is_after ? Tone::kGood : Tone::kBad));
  }
  if (run.has_is_compliant() && !run.is_compliant())
    absl::StrAppend(&line, "  ", style.Mark(Tone::kBad), " breaks a rule");
  return line;
}

std::vector<Command> ScoreCommands() {
  return {{.path = "score",
           .summary = "scores: of all entries, of one with its runs, or of a folder offline",
           .description =
               "Without argument the scores of all entries. With an entry's id each run's time and "
               "its part in the olympic mean. With a folder all result_*.txt below it are judged "
               "and scored here, without a coordinator; the round says by which rules.",
           .positionals = {{.name = "ID_OR_DIR",
                            .help = "e-42, @last, or a folder",
                            .is_required = false,
                            .completes = Completes::kDirectory}},
           .options = {{.name = "round",
                        .kind = Option::Kind::kText,
                        .value = "ROUND",
                        .help = "rules for a folder (v1.0, hpc-3.0.0, or a round's TOML file); "
                                "for entries: of this round only"},
                       {.name = "benchmark",
                        .kind = Option::Kind::kText,
                        .value = "BENCHMARK",
                        .help = "entries of this benchmark only"}},
           .examples = {{"assay score @last", "which runs count, and why"},
                        {"assay score --round v0.7", "every entry of a round"},
                        {"assay score hpc_results_v1.0 --round v1.0 -o csv", "offline"}},
           .run = RunScore}};
}

}  // namespace assay::cli
