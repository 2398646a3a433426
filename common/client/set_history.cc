#include "common/client/set_history.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/time_util.h"

#include "common/client/comparison.h"
#include "common/client/entry_score.h"
#include "common/client/ids.h"
#include "common/client/resource_json.h"
#include "common/rules/score.h"
#include "common/status.h"

namespace assay::client {
namespace {

constexpr double kMsPerMinute = 60'000;

std::optional<analysis::TimedRun> TimedRunOf(const rules::Scoring& scoring, const v1::Run& run) {
  const rules::RunScore score = RunScoreOf(run);
  if (!rules::HasTime(scoring.counts, score) || !run.is_converged() || run.epoch_count() < 1 ||
      !(*score.run_ms > 0))
    return std::nullopt;
  return analysis::TimedRun{.minutes = *score.run_ms / kMsPerMinute,
                            .epochs = static_cast<double>(run.epoch_count())};
}

int64_t FirstRunStartMs(const std::vector<v1::Run>& runs) {
  int64_t first_ms = 0;
  for (const v1::Run& run : runs)
    if (run.has_run_start_ms() && (first_ms == 0 || run.run_start_ms() < first_ms))
      first_ms = run.run_start_ms();
  return first_ms;
}

// The machines of all runs, in alphabetical order.
Json MachinesOf(const std::vector<v1::Run>& runs) {
  std::set<std::string> nodes;
  for (const v1::Run& run : runs) {
    const auto& names = run.node_names().empty() ? run.workers() : run.node_names();
    for (const std::string& name : names)
      nodes.insert(ShortId(name));
  }
  return Json(nodes);
}

// What may explain a change, of an entry.
Json SettingsOf(const EntryView& view) {
  const Json entry = EntryJson(view.entry);
  Json settings = Json::object();
  for (const char* const member :
       {"hyperparameters", "dataset", "nodes", "ranks_per_node", "backend", "workload", "labels",
        "epochs_max", "staging", "status", "borrowed_from", "rules_digest", "submitter",
        "organization"})
    if (const auto found = entry.find(member); found != entry.end()) settings[member] = *found;
  settings["machines"] = MachinesOf(view.runs);
  return settings;
}

std::string TimeOfMs(int64_t time_ms) {
  return google::protobuf::util::TimeUtil::ToString(
      google::protobuf::util::TimeUtil::MillisecondsToTimestamp(time_ms));
}

Json JudgementJson(const analysis::Judgement& judgement) {
  Json json = {{"standing", std::string(NameOf(judgement.standing))},
               {"earlier_sets", judgement.earlier_count}};
  if (!judgement.interval) return json;
  json["expected_low"] = judgement.interval->low;
  json["expected_high"] = judgement.interval->high;
  return json;
}

Json SeriesKeyJson(const analysis::SeriesKey& key) {
  Json json = {{"series", TextOf(key)},    {"system", key.system}, {"benchmark", key.benchmark},
               {"division", key.division}, {"round", key.round},   {"scaling", key.scaling}};
  if (key.scale > 0) json["units"] = key.scale;
  if (key.batch_size > 0) json["batch_size"] = key.batch_size;
  return json;
}

// Whether times of the two mean the same.
bool IsAlike(const v1::Submission& one, const v1::Submission& other) {
  return one.spec().benchmark() == other.spec().benchmark() &&
         (one.scaling() == "weak") == (other.scaling() == "weak");
}

std::string ChangeState(const analysis::Change& change) {
  if (change.is_vetoed) return "vetoed";
  return change.p_value ? "found" : "marked";
}

}  // namespace

analysis::RunSet RunSetOf(const v1::Submission& entry, const std::vector<v1::Run>& runs) {
  analysis::RunSet set = {.name = ShortId(entry.name()), .is_weak = entry.scaling() == "weak"};
  const rules::Scoring scoring = ScoringOf(entry);
  for (const v1::Run& run : RunsThatCount(entry, runs)) {
    if (const std::optional<analysis::TimedRun> timed = TimedRunOf(scoring, run))
      set.runs.push_back(*timed);
    else
      ++set.failed_count;
  }
  return set;
}

analysis::SeriesKey SeriesKeyOf(const v1::Submission& entry, const std::vector<v1::Run>& runs) {
  const v1::SubmissionSpec& spec = entry.spec();
  analysis::SeriesKey key = {.system = spec.system(),
                             .benchmark = spec.benchmark(),
                             .division = spec.division(),
                             .round = spec.round(),
                             .scaling = entry.scaling().empty() ? "strong" : entry.scaling(),
                             .scale = spec.node_count()};
  const std::vector<v1::Run> counted = RunsThatCount(entry, runs);
  if (counted.empty()) return key;
  if (counted.front().instance_scale() > 0) key.scale = counted.front().instance_scale();
  key.batch_size = counted.front().global_batch_size();
  return key;
}

analysis::NotedEntry NotedEntryOf(const v1::Submission& entry) {
  analysis::NotedEntry noted = {.id = ShortId(entry.name()),
                                .organization = entry.spec().organization(),
                                .system = entry.spec().system()};
  for (const v1::Note& note : entry.notes())
    noted.notes.push_back(
        {.author = note.author(),
         .organization = note.organization(),
         .time_ms = google::protobuf::util::TimeUtil::TimestampToMilliseconds(note.create_time()),
         .text = note.text()});
  return noted;
}

Json SetComparisonJson(const analysis::SetComparison& comparison) {
  Json measures = Json::array();
  for (const analysis::MeasureComparison& one : comparison.measures) {
    Json row = {{"measure", std::string(NameOf(one.measure))},
                {"a", one.a},
                {"b", one.b},
                {"ratio", one.ratio}};
    if (one.low) {
      row["ratio_low"] = *one.low;
      row["ratio_high"] = *one.high;
    }
    row["is_significant"] = one.is_significant();
    measures.push_back(std::move(row));
  }
  return {{"a", comparison.a},
          {"b", comparison.b},
          {"sentence", ComparisonSentence(comparison)},
          {"runs_a", comparison.runs_a},
          {"runs_b", comparison.runs_b},
          {"confidence", comparison.confidence},
          {"seed", comparison.seed},
          {"insignificant_count", comparison.insignificant_count()},
          {"measures", std::move(measures)}};
}

absl::StatusOr<std::optional<analysis::SetComparison>> CompareEntries(const Client& client,
                                                                      const std::string& a,
                                                                      const std::string& b) {
  std::vector<EntryView> views;
  for (const std::string& id : {a, b}) {
    ASSIGN_OR_RETURN(v1::Submission entry, GetEntry(client, id));
    ASSIGN_OR_RETURN(std::vector<v1::Run> runs, AllRunsOf(client, entry.name()));
    views.push_back({.entry = std::move(entry), .runs = std::move(runs)});
  }
  const v1::Submission& one = views[0].entry;
  const v1::Submission& other = views[1].entry;
  if (!IsAlike(one, other)) return std::nullopt;
  return CompareSets(RunSetOf(one, views[0].runs), RunSetOf(other, views[1].runs), {});
}

absl::StatusOr<analysis::SetComparison> CompareGroups(
    const Client& client, std::span<const v1::Submission> a, std::span<const v1::Submission> b,
    absl::FunctionRef<void(const std::string&)> progress) {
  if (a.empty() || b.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("set ", a.empty() ? "A" : "B", " is empty: its filter finds no entry"));
  analysis::RunSet sets[] = {{.name = "set A"}, {.name = "set B"}};
  std::set<std::string> names;
  for (const std::span<const v1::Submission>& group : {a, b}) {
    analysis::RunSet& set = sets[group.data() == a.data() ? 0 : 1];
    for (const v1::Submission& entry : group) {
      const std::string id = ShortId(entry.name());
      if (!names.insert(id).second)
        return absl::InvalidArgumentError(
            absl::StrCat(id, " is in both sets: the filters must not find the same"));
      if (!IsAlike(a.front(), entry))
        return absl::InvalidArgumentError(
            absl::StrCat(id, " is of another benchmark or metric than ", ShortId(a.front().name()),
                         " (", a.front().spec().benchmark(), "): narrow the filters to one"));
      progress(id);
      ASSIGN_OR_RETURN(const std::vector<v1::Run> runs, AllRunsOf(client, entry.name()));
      const analysis::RunSet one = RunSetOf(entry, runs);
      set.runs.insert(set.runs.end(), one.runs.begin(), one.runs.end());
      set.failed_count += one.failed_count;
      set.is_weak = one.is_weak;
    }
  }
  return CompareSets(sets[0], sets[1], {});
}

absl::StatusOr<SetHistory> ReadSetHistory(const Client& client,
                                          std::span<const v1::Submission> entries,
                                          const analysis::SeriesOptions& options,
                                          absl::FunctionRef<void(const std::string&)> progress) {
  SetHistory history;
  std::map<analysis::SeriesKey, std::vector<analysis::SeriesPoint>> points;
  std::vector<analysis::NotedEntry> noted;
  for (const v1::Submission& entry : entries) {
    progress(ShortId(entry.name()));
    ASSIGN_OR_RETURN(std::vector<v1::Run> runs, AllRunsOf(client, entry.name()));
    const std::optional<analysis::SeriesPoint> point =
        PointOf(RunSetOf(entry, runs), FirstRunStartMs(RunsThatCount(entry, runs)));
    if (!point) continue;
    points[SeriesKeyOf(entry, runs)].push_back(*point);
    noted.push_back(NotedEntryOf(entry));
    history.views.emplace(point->set, EntryView{.entry = entry, .runs = std::move(runs)});
  }
  const std::vector<analysis::ChangeDecision> decisions = analysis::DecisionsOf(noted);
  for (auto& [key, members] : points)
    history.series.push_back(JudgeSeries(key, std::move(members), decisions, options));
  return history;
}

Json WhatDiffers(const EntryView& before, const EntryView& after) {
  Json rows = Json::array();
  const Json compared = CompareResources({"before", "after"},
                                         {SettingsOf(before), SettingsOf(after)}, /*is_all=*/false);
  for (const Json& row : compared)
    rows.push_back({{"field", row["field"]},
                    {"before", row.value("before", "")},
                    {"after", row.value("after", "")}});
  return rows;
}

Json SeriesJson(const analysis::Series& series) {
  Json json = SeriesKeyJson(series.key);
  json["set_count"] = series.points.size();
  Json sets = Json::array();
  for (size_t i = 0; i < series.points.size(); ++i) {
    const analysis::SeriesPoint& point = series.points[i];
    Json row = {{"set", point.set},
                {"time", TimeOfMs(point.time_ms)},
                {"run_count", point.run_count},
                {"epoch_seconds", point.epoch_seconds},
                {"epochs", point.epochs}};
    for (const analysis::MeasureHistory& history : series.measures)
      row[absl::StrCat(NameOf(history.measure), "_judged")] = JudgementJson(history.judgements[i]);
    sets.push_back(std::move(row));
  }
  json["sets"] = std::move(sets);
  return json;
}

Json ChangesJson(const analysis::Series& series, const std::map<std::string, EntryView>& views) {
  Json rows = Json::array();
  for (const analysis::MeasureHistory& history : series.measures) {
    for (const analysis::Change& change : history.changes) {
      const std::string& first = series.points[static_cast<size_t>(change.first)].set;
      const std::string& before = series.points[static_cast<size_t>(change.first) - 1].set;
      Json row = SeriesKeyJson(series.key);
      row["measure"] = std::string(NameOf(history.measure));
      row["first_set"] = first;
      row["time"] = TimeOfMs(series.points[static_cast<size_t>(change.first)].time_ms);
      row["set_before"] = before;
      row["ratio"] = change.ratio;
      if (change.p_value) row["p_value"] = *change.p_value;
      row["state"] = ChangeState(change);
      row["differs"] = WhatDiffers(views.at(before), views.at(first));
      if (change.decision) {
        row["author"] = change.decision->author;
        row["reason"] = change.decision->reason;
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace assay::client
