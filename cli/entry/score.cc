#include "cli/entry/score.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "cli/entry/folder_score.h"
#include "cli/entry/prune.h"
#include "cli/rules/rule_sets.h"
#include "cli/terminal/resource_columns.h"
#include "common/client/energy.h"
#include "common/client/entry_score.h"
#include "common/client/ids.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/client/touch_evidence.h"
#include "common/status.h"

namespace assay::cli {
namespace {

std::string TouchText(const v1::Run& run) {
  const std::optional<double> after_ms = client::TouchAfterStartMs(run);
  if (!after_ms.has_value()) return "";
  std::string text = absl::StrFormat("%+.1f ms", *after_ms);
  if (const std::optional<double> error_ms = client::TouchErrorMs(run); error_ms.has_value())
    absl::StrAppendFormat(&text, " +-%.1f ms", *error_ms);
  return absl::StrCat(text, run.has_first_touch_us() ? "" : " (observed)");
}

// ------------------------------------------------------------------------------------ of entries

absl::StatusOr<ExitStatus> ScoreEntry(Context* context, const std::string& id, bool is_pruning) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::Submission entry, client::GetEntry(*client, id));
  ASSIGN_OR_RETURN(const std::vector<v1::Run> runs, client::AllRunsOf(*client, entry.name()));
  RETURN_IF_ERROR(is_pruning ? PrintPrunings(context, entry, runs)
                             : PrintScore(context, entry, runs));
  if (!client::IsEnded(entry.state())) return ExitStatus::kStillRunning;
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
          {"ENTRY", "id", Format::kText, 1},
          {"MODELS/MIN", "models_per_minute", Format::kNumber, 2},
          {"REFERENCE", "reference_verdict", Format::kText, 5},
          {"NORMALIZED", "normalized_score_minutes", Format::kMinutes, 5}};
}

absl::StatusOr<ExitStatus> ScoreAll(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  v1::ListSubmissionsRequest request;
  request.set_round(CanonicalRound(arguments.Get("round")));
  request.set_benchmark(arguments.Get("benchmark"));
  constexpr int64_t kEntriesMax = 10'000;
  ASSIGN_OR_RETURN(std::vector<v1::Submission> entries,
                   client::ListEntries(*client, request, kEntriesMax));
  const auto key = [](const v1::Submission& entry) {
    const v1::SubmissionSpec& spec = entry.spec();
    // Entries without a score come after those with one.
    return std::make_tuple(spec.round(), spec.benchmark(), entry.scaling(), spec.division(),
                           entry.has_score_minutes() ? entry.score_minutes() : INFINITY,
                           -entry.throughput().models_per_minute(), spec.system());
  };
  std::sort(entries.begin(), entries.end(),
            [&](const v1::Submission& a, const v1::Submission& b) { return key(a) < key(b); });
  ListView view{.schema = "assay.entry/v1",
                .columns = ScoreListColumns(),
                .empty_text = "no entries; 'assay submit FILE' or 'assay import DIR' makes some"};
  for (const v1::Submission& entry : entries)
    view.items.push_back(client::EntryJson(entry));
  RETURN_IF_ERROR(context->printer().List(view));
  return ExitStatus::kDone;
}

bool IsDirectory(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

absl::StatusOr<ExitStatus> RunScore(Context* context, const Arguments& arguments) {
  const std::string what = arguments.Get("ID_OR_DIR");
  if (arguments.Has("prune")) {
    if (!what.empty()) return ScoreEntry(context, what, /*is_pruning=*/true);
    return absl::InvalidArgumentError("--prune: of which entry? assay score ID --prune");
  }
  if (what.empty()) return ScoreAll(context, arguments);
  const std::string directory = context->env().AbsolutePath(what);
  if (what[0] != '@' && IsDirectory(directory)) {
    if (!arguments.Has("round"))
      return absl::InvalidArgumentError(
          "which rules judge a folder? say so with --round ('assay rules list')");
    return ScoreFolders(context, arguments.Get("round"), directory);
  }
  if (absl::StrContains(what, "/") && !absl::StartsWith(what, "submissions/"))
    return absl::NotFoundError(absl::StrCat("there is no folder ", what));
  return ScoreEntry(context, what, /*is_pruning=*/false);
}

// The verdict knows how far the nodes' clocks may be apart.
bool IsTouchEarly(const v1::Run& run) {
  return std::any_of(run.findings().begin(), run.findings().end(), [](const v1::Finding& finding) {
    return finding.rule() == "R-TIM-001" || finding.rule() == "R-TIM-002";
  });
}

}  // namespace

Json ScoreJson(const v1::Submission& entry, const std::vector<v1::Run>& runs) {
  const client::EntryScore score = client::ScoreOfEntry(entry, runs);
  Json json = client::EntryJson(entry);
  for (const char* unused : {"hyperparameters", "labels", "runs", "submitter"})
    json.erase(unused);
  const std::string is_not = client::NotMlperfText(entry);
  json["score_label"] = is_not.empty() ? "MLPerf HPC rules" : is_not;
  client::AddScore(score, &json);
  json["run_details"] = Json::array();
  for (size_t i = 0; i < runs.size(); ++i) {
    Json run = client::RunJson(runs[i]);
    Json row = {{"id", run["id"]}};
    for (const char* field :
         {"number", "state", "seconds", "error_seconds", "arrival_seconds", "coordinator_seconds",
          "energy_joules", "energy_error_joules", "energy_scope", "converged", "quality", "epochs",
          "touch_after_run_start_ms", "touch_error_ms", "touch_assurance", "touch_hole_codes"})
      if (run.contains(field)) row[field] = run[field];
    if (run.contains("seconds")) row["minutes"] = run["seconds"].get<double>() / 60.0;
    if (run.contains("compliant")) row["verdict"] = run["compliant"].get<bool>() ? "ok" : "fail";
    const std::string touch = TouchText(runs[i]);
    if (!touch.empty()) row["touch"] = touch;
    row["part"] = score.parts[i];
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
                           {"clocks", "clock_text"},
                           {"energy", "energy_text"},
                           {"first touch", "touch_text"},
                           {"attempts", "attempts_text"},
                           {"interval", "interval_text"},
                           {"preview", "preview_text"},
                           {"window", "window_text"},
                           {"reference", "reference_text"},
                           {"label", "score_label"},
                           {"rules", "rules_digest", Format::kDigest}},
                .sections = {{"Runs", "run_details", RunScoreColumns()},
                             {"Findings", "findings", FindingColumns()}}};
  if (context->printer().IsStructured()) {
    // Programs get the figures, not the sentences.
    for (Column& field : view.fields) {
      if (field.field == "score_text") field.field = "score_minutes";
      if (field.field == "clock_text") field.field = "score_error_minutes";
      if (field.field == "energy_text") field.field = "energy_joules";
      if (field.field == "touch_text") field.field = "touch_assurance";
    }
  } else {
    client::AddTexts(entry, client::ScoreOfEntry(entry, runs), &view.value);
  }
  return context->printer().Show(view);
}

std::string RunSummaryLine(const Printer& printer, const v1::Run& run) {
  std::string line = absl::StrFormat("  %-6s ", client::ShortId(run.name()));
  const bool is_good = run.state() == v1::Run::SUCCEEDED && run.is_converged();
  const Style& style = printer.style();
  if (run.state() != v1::Run::SUCCEEDED) {
    absl::StrAppend(&line, style.Mark(Tone::kBad), " ", client::StateText(run.state()), "  ",
                    run.state_reason());
    if (run.state() == v1::Run::FAILED)
      absl::StrAppend(&line, "; assay logs ", client::ShortId(run.name()), " --stderr");
    return line;
  }
  absl::StrAppend(&line, style.Mark(is_good ? Tone::kGood : Tone::kBad), " ",
                  is_good ? "converged" : "not converged");
  if (const auto seconds = client::TimeToSolutionSeconds(run); seconds.has_value())
    absl::StrAppend(&line, "  ", printer.FormatField(*seconds, Format::kSeconds));
  if (run.has_time_error_us())
    absl::StrAppendFormat(&line, " +-%.3f s", static_cast<double>(run.time_error_us()) * 1e-6);
  if (const auto energy = client::EnergyOf(run); energy.has_value())
    absl::StrAppend(&line, "  ", client::EnergyText(*energy));
  if (run.has_quality())
    absl::StrAppend(&line, "  quality ", printer.FormatField(run.quality(), Format::kNumber));
  if (run.has_epoch_count()) absl::StrAppend(&line, "  ", run.epoch_count(), " epochs");
  const std::string touch = TouchText(run);
  if (!touch.empty()) {
    absl::StrAppend(&line, "  first touch ", touch, " after run_start");
    const bool is_after = !absl::StartsWith(touch, "-");
    if (is_after || IsTouchEarly(run)) {
      absl::StrAppend(&line, " ", style.Mark(is_after ? Tone::kGood : Tone::kBad));
    } else {
      absl::StrAppend(&line, ", which is as near as the nodes' clocks tell ",
                      style.Mark(Tone::kWarn));
    }
  }
  if (run.has_is_compliant() && !run.is_compliant())
    absl::StrAppend(&line, "  ", style.Mark(Tone::kBad), " breaks a rule");
  return line;
}

std::vector<Command> ScoreCommands() {
  return {
      {.path = "score",
       .summary = "scores: of all entries, of one with its runs, or of a folder offline",
       .description =
           "Without argument the scores of all entries. With an entry's id each run's time and "
           "its part in the olympic mean, how sure the mean is, and what it can still become "
           "while runs are going. With a folder all result_*.txt below it are judged and scored "
           "here, without a coordinator, by the rules of the round; --json also has what the "
           "official tools say of each set.",
       .positionals = {{.name = "ID_OR_DIR",
                        .help = "e-42, @last, or a folder",
                        .is_required = false,
                        .completes = Completes::kEntryOrDirectory}},
       .options = {{.name = "round",
                    .kind = Option::Kind::kText,
                    .value = "ROUND",
                    .help = "rules for a folder (v1.0, hpc-3.0.0, or a round's TOML file); "
                            "for entries: of this round only",
                    .completes = Completes::kRound},
                   {.name = "benchmark",
                    .kind = Option::Kind::kText,
                    .value = "BENCHMARK",
                    .help = "entries of this benchmark only",
                    .completes = Completes::kBenchmark},
                   {.name = "prune",
                    .help = "of a throughput set: what leaving good instances out would give"}},
       .examples = {{"assay score @last", "which runs count, and why"},
                    {"assay score e-42 --prune", "what 'assay prune' may choose"},
                    {"assay score --round v0.7", "every entry of a round"},
                    {"assay score hpc_results_v1.0 --round v1.0 -o csv", "offline"}},
       .run = RunScore}};
}

}  // namespace assay::cli
