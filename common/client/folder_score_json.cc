#include "common/client/folder_score_json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

#include "common/client/score_parts.h"
#include "common/json_document.h"
#include "common/json_value.h"

namespace assay::client {
namespace {

using package::JudgedRun;
using package::OfficialScore;
using package::ResultFolder;
using package::SetScore;

// Sets of more runs than this are summed up, not listed.
constexpr size_t kListedRunsMax = 20;

// Python's round(value, digits): the official tools print rounded figures.
double Rounded(double value, int digits) {
  return std::strtod(absl::StrFormat("%.*f", digits, value).c_str(), nullptr);
}

Json RoundedOrNull(const std::optional<double>& value) {
  constexpr int kOfficialDigits = 10;
  return value ? Json(Rounded(*value, kOfficialDigits)) : Json(nullptr);
}

Json NumberOrNull(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json ToJson(const JsonValue& value) {
  return ParseJsonDocument<Json>(DumpJson(value));
}

// Whole epochs as integers.
Json EpochJson(double epochs) {
  return epochs == std::floor(epochs) && std::fabs(epochs) < 1e15
             ? Json(static_cast<int64_t>(epochs))
             : Json(epochs);
}

// ------------------------------------------------------------------------- as the official tools

Json TextOrNull(const JsonValue& description, const char* member) {
  return description.Find(member) == nullptr ? Json(nullptr)
                                             : Json(package::MemberText(description, member));
}

void AddDescription(const SetScore& set, Json* json) {
  const JsonValue& description = set.judged.folder.system_description;
  std::set<std::string> divisions;
  for (const JudgedRun& run : set.judged.runs)
    if (!run.result.facts.division.empty()) divisions.insert(run.result.facts.division);
  (*json)["division_json"] = TextOrNull(description, "division");
  (*json)["division_log"] = divisions;
  (*json)["status_json"] = TextOrNull(description, "status");
  (*json)["system_name"] = TextOrNull(description, "system_name");
  (*json)["number_of_nodes_json"] = TextOrNull(description, "number_of_nodes");
  (*json)["accelerators_per_node_json"] = TextOrNull(description, "accelerators_per_node");
  (*json)["host_processors_per_node_json"] = TextOrNull(description, "host_processors_per_node");
}

// The runs by path, as the official tools see them.
std::vector<const JudgedRun*> ByPath(const SetScore& set) {
  std::vector<const JudgedRun*> runs;
  for (const JudgedRun& run : set.judged.runs)
    runs.push_back(&run);
  std::sort(runs.begin(), runs.end(),
            [](const JudgedRun* a, const JudgedRun* b) { return a->file_name < b->file_name; });
  return runs;
}

void AddSeeds(const SetScore& set, Json* json) {
  Json lists = Json::array();
  std::set<std::string> distinct;
  int without = 0;
  for (const JudgedRun* run : ByPath(set)) {
    Json seeds = Json::array();
    for (const JsonValue& seed : run->result.facts.seeds) {
      seeds.push_back(ToJson(seed));
      distinct.insert(DumpJson(seed));
    }
    without += seeds.empty() ? 1 : 0;
    lists.push_back(std::move(seeds));
  }
  const size_t count = lists.size();
  (*json)["seeds"] =
      count <= kListedRunsMax ? std::move(lists) : Json(absl::StrCat(count, " runs"));
  (*json)["n_distinct_seeds"] = distinct.size();
  (*json)["runs_without_seed"] = without;
}

void AddTimes(const SetScore& set, Json* json) {
  std::vector<double> times_ms;
  std::set<int64_t> batch_sizes;
  int converged = 0;
  for (const JudgedRun& run : set.judged.runs) {
    const rules::Facts& facts = run.result.facts;
    if (const auto run_ms = facts.run_ms(); run_ms) times_ms.push_back(*run_ms);
    if (facts.global_batch_size && facts.global_batch_size->AsInt64())
      batch_sizes.insert(*facts.global_batch_size->AsInt64());
    converged += facts.reached_target ? 1 : 0;
  }
  std::sort(times_ms.begin(), times_ms.end());
  Json minutes = Json::array();
  for (const double time_ms : times_ms)
    minutes.push_back(Rounded(time_ms / 60000, 6));
  (*json)["converged"] = converged;
  (*json)["global_batch_size"] = batch_sizes;
  AddSeeds(set, json);
  (*json)["run_minutes"] =
      set.judged.runs.size() <= kListedRunsMax ? std::move(minutes) : Json(nullptr);
  (*json)["run_minutes_minmax"] =
      times_ms.empty() ? Json(nullptr) : Json({times_ms.front(), times_ms.back()});
}

Json DetailJson(const rules::SummaryRow& row) {
  return {{"time_to_train", RoundedOrNull(row.minutes)},
          {"Energy", RoundedOrNull(row.energy)},
          {"GBS", row.batch_size ? Json(*row.batch_size) : Json(nullptr)},
          {"samples_to_converge", RoundedOrNull(row.epochs_to_converge)},
          {"RCP", row.reference_word},
          {"rcp_scaling_factor", RoundedOrNull(row.scaling_factor)}};
}

void AddStrong(const OfficialScore& official, Json* json) {
  (*json)["score_own_rule_min"] = NumberOrNull(official.documented.minutes);
  (*json)["official_pass1_min"] = RoundedOrNull(official.summary.first.minutes);
  (*json)["official_detail_pass1"] = DetailJson(official.summary.first);
  (*json)["official_pass2_min"] = RoundedOrNull(official.summary.second.minutes);
  (*json)["official_detail_pass2"] = DetailJson(official.summary.second);
}

void AddWeak(const SetScore& set, const OfficialScore& official, Json* json) {
  const rules::Throughput& score = official.throughput;
  Json figures = {
      {"number_of_models", nullptr}, {"instance_scale", nullptr}, {"time_to_train_all", nullptr}};
  if (score.is_scored) {
    figures["number_of_models"] = score.model_count;
    if (score.instance_scale()) figures["instance_scale"] = *score.instance_scale();
    figures["time_to_train_all"] = RoundedOrNull(score.time_to_all_minutes);
  }
  (*json)["official"] = std::move(figures);
  const JsonValue& description = set.judged.folder.system_description;
  int64_t nodes = 0;
  int64_t accelerators = 0;
  const bool has_accelerators =
      absl::SimpleAtoi(package::MemberText(description, "number_of_nodes"), &nodes) &&
      absl::SimpleAtoi(package::MemberText(description, "accelerators_per_node"), &accelerators);
  Json own = {{"S", score.instance_scales},
              {"M_prime", score.model_count},
              {"TTTa_min", NumberOrNull(score.time_to_all_minutes)}};
  own["T_accelerators_json"] = has_accelerators ? Json(nodes * accelerators) : Json(nullptr);
  own["T_units_json"] = set.total_scale ? EpochJson(*set.total_scale) : Json(nullptr);
  own["models_per_minute"] = score.time_to_all_minutes && *score.time_to_all_minutes > 0
                                 ? Json(score.models_per_minute())
                                 : Json(nullptr);
  own["M_total_including_pruned"] = score.total_count();
  (*json)["own"] = std::move(own);
}

Json VerdictJson(const rules::ConvergenceVerdict& verdict) {
  if (!verdict.exception.empty()) return {{"error", verdict.exception}};
  return {{"passed", verdict.passed}, {"msg", verdict.message}, {"norm", verdict.normalization}};
}

void AddConvergence(const OfficialScore& official, Json* json) {
  (*json)["rcp"] = {{"pruned_rcps", VerdictJson(official.pruned)},
                    {"full_rcps", VerdictJson(official.full)}};
  if (!official.submission.exception.empty()) {
    (*json)["rcp_submission"] = {{"error", official.submission.exception}};
    return;
  }
  Json epochs = Json::array();
  for (const double epoch : official.submission.epochs)
    epochs.push_back(EpochJson(epoch));
  (*json)["rcp_submission"] = {{"bs", official.submission.batch_size},
                               {"epochs", std::move(epochs)},
                               {"olympic_mean", NumberOrNull(official.submission.olympic_mean())}};
}

void AddOfficial(const SetScore& set, Json* json) {
  const ResultFolder& folder = set.judged.folder;
  (*json)["org"] = folder.organization;
  AddDescription(set, json);
  (*json)["runs"] = set.judged.runs.size();
  (*json)["runs_pruned"] = folder.pruned_files.size();
  AddTimes(set, json);
  (*json)["scaling_json_shipped"] = NumberOrNull(set.shipped_scaling);
  if (!set.official) return;
  const OfficialScore& official = *set.official;
  (*json)["official_rule_set"] = official.rule_set;
  (*json)["compliant"] = std::count(official.compliant.begin(), official.compliant.end(), true);
  if (set.is_weak()) {
    AddWeak(set, official, json);
  } else {
    AddStrong(official, json);
  }
  AddConvergence(official, json);
}

// ------------------------------------------------------------------------------------------ ours

Json RunRow(const JudgedRun& judged, const std::string& part) {
  const rules::Facts& facts = judged.result.facts;
  Json row = {{"id", std::string(absl::StripSuffix(judged.file_name, ".txt"))},
              {"converged", facts.reached_target},
              {"verdict", judged.result.pass ? "ok" : "fail"},
              {"part", part}};
  if (const auto run_ms = facts.run_ms(); run_ms.has_value()) {
    row["seconds"] = *run_ms / 1000.0;
    row["minutes"] = *run_ms / 60000.0;
  }
  if (facts.quality.has_value()) row["quality"] = *facts.quality;
  row["epochs"] = facts.epochs;
  return row;
}

Json RunRows(const SetScore& set) {
  std::vector<rules::RunScore> scores;
  for (const JudgedRun& run : set.judged.runs)
    scores.push_back(rules::ScoreOf(run.result));
  rules::WindowScore whole = set.window;
  whole.first = 0;
  whole.size = static_cast<int>(scores.size());
  whole.score = set.judged.score;
  const std::vector<std::string> parts = PartsOf(scores, whole);
  Json rows = Json::array();
  for (size_t i = 0; i < set.judged.runs.size(); ++i) {
    const JudgedRun& run = set.judged.runs[i];
    const std::string weak_part = run.result.pass ? "counts" : "fails";
    rows.push_back(RunRow(run, set.is_weak() ? weak_part : parts[i]));
  }
  return rows;
}

void AddThroughput(const rules::Throughput& score, Json* json) {
  (*json)["model_count"] = score.model_count;
  if (score.instance_scale()) (*json)["instance_scale"] = *score.instance_scale();
  if (score.time_to_all_minutes) (*json)["time_to_all_minutes"] = *score.time_to_all_minutes;
  if (score.is_scored) (*json)["models_per_minute"] = score.models_per_minute();
}

// What the t-test of the pruned reference points rests on.
void AddReference(const rules::ConvergenceVerdict& verdict, Json* json) {
  (*json)["rcp_word"] = rules::SummaryWord(verdict);
  if (!verdict.reference) return;
  Json reference = {{"batch_size", verdict.reference->batch_size},
                    {"is_interpolated", verdict.match == rules::ReferenceMatch::kInterpolated},
                    {"mean_epochs", verdict.reference->mean},
                    {"min_epochs", verdict.reference->min_epochs}};
  if (verdict.p_value) reference["p_value"] = NumberOrNull(*verdict.p_value);
  (*json)["reference"] = std::move(reference);
}

}  // namespace

Json FolderScoreJson(const SetScore& set) {
  const package::JudgedFolder& judged = set.judged;
  const ResultFolder& folder = judged.folder;
  Json json = {{"organization", folder.organization},
               {"system", folder.system},
               {"benchmark", folder.benchmark},
               {"scaling", folder.scaling.empty() ? "strong" : folder.scaling}};
  if (!judged.division().empty()) json["division"] = judged.division();
  json["round"] = judged.rule_set;
  json["source_path"] = folder.source_path;
  if (judged.score.minutes.has_value()) json["score_minutes"] = *judged.score.minutes;
  json["run_count"] = judged.runs.size();
  json["pass_count"] = std::count_if(judged.runs.begin(), judged.runs.end(),
                                     [](const JudgedRun& run) { return run.result.pass; });
  if (judged.throughput) AddThroughput(*judged.throughput, &json);
  if (set.interval) json["interval"] = IntervalJson(*set.interval);
  if (set.window.windows > 0) json["window"] = WindowJson(set.window);
  if (set.official) AddReference(set.official->pruned, &json);
  if (!set.notes.empty()) json["note"] = absl::StrJoin(set.notes, "; ");
  AddOfficial(set, &json);
  json["run_details"] = RunRows(set);
  return json;
}

}  // namespace assay::client
