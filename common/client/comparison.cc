#include "common/client/comparison.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/client/artifacts.h"
#include "common/client/energy.h"
#include "common/client/entry_score.h"
#include "common/client/export.h"
#include "common/client/ids.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/client/run_course.h"
#include "common/json_document.h"
#include "common/program_contract.h"
#include "common/rules/registry.h"
#include "common/rules/ruleset.h"
#include "common/status.h"

namespace assay::client {
namespace {

struct Field {
  std::string name;
  std::string text;
};

void Flatten(const std::string& prefix, const Json& value, std::vector<Field>* fields) {
  for (const auto& [name, member] : value.items()) {
    const std::string path = absl::StrCat(prefix, name);
    if (member.is_object()) {
      Flatten(path + ".", member, fields);
    } else {
      fields->push_back({path, RawText(member)});
    }
  }
}

// What every resource has for itself, so that it tells nothing.
bool IsIdentity(const std::string& field) {
  static const auto* const kIdentities = new std::set<std::string>{
      "id", "set", "entry", "number", "runs", "created", "started", "ended", "artifacts"};
  return kIdentities->count(field) > 0;
}

// Fields of which less is better (times, energy), and of which more is.
constexpr absl::string_view kLessIsBetter[] = {
    "score_minutes", "normalized_score_minutes", "seconds",         "energy_joules",
    "epochs",        "time_to_all_minutes",      "epoch_at_target", "seconds_at_target"};
constexpr absl::string_view kMoreIsBetter[] = {"models_per_minute"};

// Numbers that count nothing.
constexpr absl::string_view kStamps[] = {"seed", "run_start_ms", "run_stop_ms", "first_touch_us",
                                         "observed_touch_us"};

// "0.85", the second to the first, and "better" or "worse" of the second where that can be said.
void AddRatio(const std::string& field, const std::string& one, const std::string& other,
              Json* row) {
  if (absl::c_linear_search(kStamps, field)) return;
  double first = 0;
  double second = 0;
  if (!absl::SimpleAtod(one, &first) || !absl::SimpleAtod(other, &second) || first == 0) return;
  const double ratio = second / first;
  std::string text = absl::StrFormat("%.4g", ratio);
  const bool is_less_better = absl::c_linear_search(kLessIsBetter, field);
  if (ratio > 0 && (is_less_better || absl::c_linear_search(kMoreIsBetter, field))) {
    (*row)["direction"] = (ratio < 1) == is_less_better ? "better" : "worse";
    absl::StrAppend(&text, " ", (*row)["direction"].get<std::string>());
  }
  (*row)["ratio"] = std::move(text);
}

// The quality of a run by its log: at its best, at its end and at the target, with the epoch and
// the time of the target. Nothing where there is no log, or the round is not known here.
void AddQuality(const Client& client, const v1::Run& run, Json* json) {
  const v1::ArtifactRef* const log = ResultFile(run);
  if (log == nullptr) return;
  const absl::StatusOr<v1::Submission> entry = GetEntry(client, ShortId(run.submission()));
  if (!entry.ok()) return;
  const rules::RuleSet* const round = rules::FindRuleSet(entry->spec().round());
  const rules::Benchmark* const benchmark =
      round == nullptr ? nullptr : round->FindBenchmark(entry->spec().benchmark());
  if (benchmark == nullptr) return;
  const absl::StatusOr<std::string> text = DownloadArtifact(client, *log);
  if (!text.ok()) return;
  const QualityReached reached = ReachedBy(ReadCourse(*text, benchmark->quality_key),
                                           benchmark->target, benchmark->lower_is_better);
  if (reached.best) (*json)["quality_best"] = reached.best->quality;
  if (reached.last) (*json)["quality_last"] = reached.last->quality;
  if (!reached.at_target) return;
  (*json)["quality_at_target"] = reached.at_target->quality;
  if (reached.at_target->epoch) (*json)["epoch_at_target"] = *reached.at_target->epoch;
  (*json)["seconds_at_target"] = reached.at_target->seconds;
}

// What went into a run of a program on its first node: command, variables, digests of source and
// image, kernel, drivers. Nothing where there is no bill of materials.
void AddMaterials(const Client& client, const v1::Run& run, Json* json) {
  for (const v1::ArtifactRef& artifact : run.artifacts()) {
    if (artifact.file_name() != absl::StrCat(kMaterialsPrefix, "0.json")) continue;
    const absl::StatusOr<std::string> text = DownloadArtifact(client, artifact);
    if (!text.ok()) return;
    Json materials = ParseJsonDocument<Json>(*text);
    if (materials.is_object()) (*json)["materials"] = std::move(materials);
  }
}

}  // namespace

absl::StatusOr<std::vector<Json>> ReadForComparison(const Client& client,
                                                    const std::vector<std::string>& ids) {
  const bool is_run = absl::StartsWith(ids[0], "r-");
  std::vector<Json> resources;
  for (const std::string& id : ids) {
    if (absl::StartsWith(id, "r-") != is_run)
      return absl::InvalidArgumentError(
          absl::StrCat("cannot compare ", ids[0], " with ", id,
                       ": give entries only (e-1 e-2) or runs only (r-1 r-2)"));
    if (is_run) {
      ASSIGN_OR_RETURN(const v1::Run run, GetRun(client, id));
      resources.push_back(RunJson(run));
      AddQuality(client, run, &resources.back());
      AddMaterials(client, run, &resources.back());
    } else {
      ASSIGN_OR_RETURN(const v1::Submission entry, GetEntry(client, id));
      ASSIGN_OR_RETURN(const std::vector<v1::Run> runs, AllRunsOf(client, entry.name()));
      resources.push_back(EntryJson(entry));
      if (const auto energy = ScoreOfEntry(entry, runs).energy)
        AddEnergy(*energy, &resources.back());
      // Those of its first run: R-SET-002 tells where another has others.
      if (!runs.empty()) AddMaterials(client, runs.front(), &resources.back());
    }
  }
  return resources;
}

Json CompareResources(const std::vector<std::string>& ids, const std::vector<Json>& resources,
                      bool is_all) {
  std::vector<std::string> order;
  std::map<std::string, std::map<std::string, std::string>> texts;  // by field, then by id
  for (size_t i = 0; i < ids.size(); ++i) {
    std::vector<Field> fields;
    Flatten("", resources[i], &fields);
    for (Field& field : fields) {
      if (IsIdentity(field.name)) continue;
      if (texts.count(field.name) == 0) order.push_back(field.name);
      texts[field.name][ids[i]] = std::move(field.text);
    }
  }
  Json rows = Json::array();
  for (const std::string& field : order) {
    const std::map<std::string, std::string>& by_id = texts[field];
    const bool is_same = by_id.size() == ids.size() &&
                         std::all_of(by_id.begin(), by_id.end(), [&by_id](const auto& entry) {
                           return entry.second == by_id.begin()->second;
                         });
    if (is_same && !is_all) continue;
    Json row = {{"field", field}, {"differs", !is_same}};
    for (const auto& [id, text] : by_id)
      row[id] = text;
    if (ids.size() == 2 && by_id.size() == 2 && !is_same)
      AddRatio(field, by_id.at(ids[0]), by_id.at(ids[1]), &row);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace assay::client
