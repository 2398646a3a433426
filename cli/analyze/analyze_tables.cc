#include "cli/analyze/analyze_tables.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

#include "cli/analyze/figures.h"
#include "common/analysis/published.h"
#include "common/client/json.h"
#include "common/status.h"

namespace assay::cli {
namespace {

using analysis::Characteristics;
using analysis::Moments;
using analysis::PublishedNumber;

constexpr double kJoulesPerKilojoule = 1000;
constexpr char kSpread[] = " ± ";
constexpr double kTrivialStagingMinutes = 1.0 / 60;

void Set(Json* item, const char* field, std::optional<double> value) {
  if (value && std::isfinite(*value)) (*item)[field] = *value;
}

// FIELD and FIELD_sd.
void SetMoments(Json* item, const std::string& field, const std::optional<Moments>& moments) {
  if (!moments) return;
  Set(item, field.c_str(), moments->mean);
  Set(item, absl::StrCat(field, "_sd").c_str(), moments->sd);
}

void SetText(Json* item, const std::string& field, const std::string& text) {
  if (!text.empty()) (*item)[absl::StrCat(field, "_text")] = text;
}

void SetNotes(Json* item, std::vector<std::string> notes) {
  notes.erase(std::remove(notes.begin(), notes.end(), ""), notes.end());
  if (!notes.empty()) (*item)["note"] = absl::StrJoin(notes, "; ");
}

std::vector<PublishedNumber> Published(const AnalysisInput& input) {
  if (input.rules->data().paper.empty()) return {};
  return analysis::CompareWithPaper(input.entries);
}

std::vector<std::string> NotesFor(const Characteristics& entry,
                                  const std::vector<std::string>& paper_tables,
                                  const std::vector<PublishedNumber>& published) {
  std::vector<std::string> notes = entry.notes;
  for (const std::string& table : paper_tables)
    notes.push_back(analysis::DifferenceFrom(table, entry, published));
  return notes;
}

std::optional<double> Percent(std::optional<double> share) {
  return share ? std::optional<double>(*share * kHundredPercent) : std::nullopt;
}

const std::vector<Column>& IdentityColumns() {
  static const auto* const kColumns = new std::vector<Column>{
      {"BENCHMARK", "benchmark"}, {"ENTRY", "label"}, {"DIVISION", "division", Format::kText, 5}};
  return *kColumns;
}

std::vector<Column> PeopleColumns(std::vector<Column> more) {
  std::vector<Column> columns = IdentityColumns();
  columns.insert(columns.end(), more.begin(), more.end());
  return columns;
}

std::vector<Column> ProgramColumns(const std::vector<std::string>& fields) {
  std::vector<Column> columns = {
      {"", "benchmark"}, {"", "organization"}, {"", "system"}, {"", "division"}, {"", "label"}};
  for (const std::string& field : fields)
    columns.push_back({"", field});
  columns.push_back({"", "note"});
  return columns;
}

// For terminals that know ASCII only.
void SpellOut(Json* item) {
  for (auto& [field, value] : item->items())
    if (value.is_string())
      value = absl::StrReplaceAll(value.get<std::string>(), {{kSpread, " +- "}});
}

}  // namespace

std::string Fixed(std::optional<double> value, int decimals) {
  return value && std::isfinite(*value) ? absl::StrFormat("%.*f", decimals, *value) : "";
}

std::string WithSpread(const std::optional<Moments>& moments, int decimals) {
  if (!moments) return "";
  const std::string mean = Fixed(moments->mean, decimals);
  if (!moments->sd) return mean;
  const double half_digit = 0.5 * std::pow(10.0, -decimals);
  const bool is_lost = *moments->sd < half_digit && *moments->sd >= half_digit / 10;
  return absl::StrCat(mean, kSpread, Fixed(moments->sd, is_lost ? decimals + 1 : decimals));
}

Json EntryIdentity(const analysis::Entry& entry) {
  Json json = {{"benchmark", entry.benchmark},
               {"organization", entry.organization},
               {"system", entry.system}};
  if (!entry.division.empty()) json["division"] = entry.division;
  json["label"] = EntryLabel(entry);
  return json;
}

AnalysisTable BreakdownTable(const AnalysisInput& input) {
  AnalysisTable table = {
      .schema = "assay.time_breakdown/v1",
      .people = PeopleColumns({{"MINUTES", "minutes_text", Format::kNumber},
                               {"STAGING %", "staging_text", Format::kNumber},
                               {"EVALUATION %", "evaluation_text", Format::kNumber},
                               {"TRAINING %", "training_text", Format::kNumber},
                               {"OTHER %", "extra_text", Format::kNumber},
                               {"STAGING % BY EQ. 2", "estimate_text", Format::kNumber, 4}}),
      .programs =
          ProgramColumns({"minutes", "staging_percent", "evaluation_percent", "training_percent",
                          "extra_percent", "estimated_staging_percent", "run_count"})};
  for (const Characteristics& entry : input.entries) {
    Json item = EntryIdentity(entry.entry);
    if (entry.minutes) Set(&item, "minutes", entry.minutes->mean);
    if (entry.breakdown) {
      const std::pair<std::string, double> parts[] = {{"staging", entry.breakdown->staging},
                                                      {"evaluation", entry.breakdown->evaluation},
                                                      {"training", entry.breakdown->training},
                                                      {"extra", entry.breakdown->extra}};
      for (const auto& part : parts) {
        Set(&item, absl::StrCat(part.first, "_percent").c_str(), part.second * kHundredPercent);
        SetText(&item, part.first, Fixed(part.second * kHundredPercent, 2));
      }
    }
    Set(&item, "estimated_staging_percent", Percent(entry.estimated_staging));
    item["run_count"] = entry.runs.size();
    SetText(&item, "minutes", entry.minutes ? Fixed(entry.minutes->mean, 2) : "");
    SetText(&item, "estimate", Fixed(Percent(entry.estimated_staging), 2));
    SetNotes(&item, entry.notes);
    table.items.push_back(std::move(item));
  }
  return table;
}

AnalysisTable StagingTable(const AnalysisInput& input) {
  AnalysisTable table = {
      .schema = "assay.staging/v1",
      .people = PeopleColumns({{"STAGING [min]", "staging_text", Format::kNumber},
                               {"EPOCH [s]", "epoch_text", Format::kNumber, 3},
                               {"STAGING / EPOCH", "ratio_text", Format::kNumber}}),
      .programs = ProgramColumns({"staging_minutes", "staging_minutes_sd", "epoch_seconds",
                                  "epoch_seconds_sd", "staging_per_epoch", "run_count"})};
  const std::vector<PublishedNumber> published = Published(input);
  for (const Characteristics& entry : input.entries) {
    if (!entry.staging_minutes) continue;
    Json item = EntryIdentity(entry.entry);
    SetMoments(&item, "staging_minutes", entry.staging_minutes);
    SetMoments(&item, "epoch_seconds", entry.epoch_s);
    Set(&item, "staging_per_epoch", entry.staging_per_epoch);
    item["run_count"] = entry.runs.size();
    SetText(&item, "staging", WithSpread(entry.staging_minutes, 2));
    SetText(&item, "epoch", WithSpread(entry.epoch_s, 2));
    SetText(&item, "ratio", Fixed(entry.staging_per_epoch, 2));
    std::vector<std::string> notes = NotesFor(entry, {"Table 5"}, published);
    if (entry.staging_minutes->mean < kTrivialStagingMinutes)
      notes.push_back("its log has staging keys, but nothing was staged");
    SetNotes(&item, std::move(notes));
    table.items.push_back(std::move(item));
  }
  return table;
}

AnalysisTable ComputeTable(const AnalysisInput& input) {
  AnalysisTable table = {
      .schema = "assay.compute/v1",
      .people = PeopleColumns({{"BATCH", "batch_size", Format::kNumber, 2},
                               {"EPOCHS", "epochs_text", Format::kNumber},
                               {"UNITS", "units", Format::kNumber, 2},
                               {"TRAIN/UNIT [1/s]", "train_text", Format::kNumber},
                               {"EVAL/UNIT [1/s]", "eval_text", Format::kNumber},
                               {"TIME [min]", "minutes_text", Format::kNumber},
                               {"BUDGET [unit h]", "budget_text", Format::kNumber},
                               {"ENERGY [kJ]", "energy_text", Format::kNumber, 6}}),
      .programs = ProgramColumns(
          {"batch_size", "epochs", "epochs_sd", "units", "train_samples_per_second_per_unit",
           "train_samples_per_second_per_unit_sd", "eval_samples_per_second_per_unit",
           "eval_samples_per_second_per_unit_sd", "score_minutes", "minutes", "minutes_sd",
           "budget_unit_hours", "energy_joules", "energy_joules_sd", "run_count"})};
  const std::vector<PublishedNumber> published = Published(input);
  for (const Characteristics& entry : input.entries) {
    Json item = EntryIdentity(entry.entry);
    if (entry.batch_size) item["batch_size"] = std::llround(*entry.batch_size);
    SetMoments(&item, "epochs", entry.epochs);
    if (entry.entry.units() > 0) item["units"] = entry.entry.units();
    SetMoments(&item, "train_samples_per_second_per_unit", entry.train_per_unit);
    SetMoments(&item, "eval_samples_per_second_per_unit", entry.eval_per_unit);
    Set(&item, "score_minutes", entry.entry.score_minutes);
    SetMoments(&item, "minutes", entry.minutes);
    Set(&item, "budget_unit_hours", entry.budget_h);
    SetMoments(&item, "energy_joules", entry.energy_joules);
    item["run_count"] = entry.runs.size();
    // As the paper prints it: the mean is the score, the spread that of the counted runs.
    std::optional<Moments> time = entry.minutes;
    if (time && entry.entry.score_minutes) time->mean = *entry.entry.score_minutes;
    SetText(&item, "epochs", WithSpread(entry.epochs, 2));
    SetText(&item, "train", WithSpread(entry.train_per_unit, 2));
    SetText(&item, "eval", WithSpread(entry.eval_per_unit, 2));
    SetText(&item, "minutes", WithSpread(time, 2));
    SetText(&item, "budget", Fixed(entry.budget_h, 2));
    if (entry.energy_joules)
      SetText(&item, "energy", Fixed(entry.energy_joules->mean / kJoulesPerKilojoule, 1));
    SetNotes(&item, NotesFor(entry, {"Table 4", "Table 6"}, published));
    table.items.push_back(std::move(item));
  }
  return table;
}

AnalysisTable ScalingTable(const AnalysisInput& input) {
  AnalysisTable table = {
      .schema = "assay.scaling/v1",
      .people = PeopleColumns({{"UNITS", "units", Format::kNumber},
                               {"BATCH", "batch_size", Format::kNumber},
                               {"UNITS/SAMPLE", "intensity_text", Format::kNumber, 4},
                               {"EPOCHS", "epochs_text", Format::kNumber},
                               {"STEPS", "steps_text", Format::kNumber, 4},
                               {"TRAIN [1/s]", "train_text", Format::kNumber, 3},
                               {"EVAL [1/s]", "eval_text", Format::kNumber, 3},
                               {"BOTH [1/s]", "both_text", Format::kNumber},
                               {"EPOCHS/h", "rate_text", Format::kNumber},
                               {"EFFICIENCY [%]", "efficiency_text", Format::kNumber, 5},
                               {"COMPUTE [min]", "compute_text", Format::kNumber}}),
      .programs = ProgramColumns(
          {"units", "batch_size", "communication_intensity", "epochs", "epochs_sd", "steps",
           "train_samples_per_second", "eval_samples_per_second", "samples_per_second",
           "epochs_per_hour", "compute_minutes", "scaling_efficiency_percent", "scaling_base"})};
  const auto efficiencies = analysis::ScalingEfficiencies(input.entries);
  for (size_t i = 0; i < input.entries.size(); ++i) {
    const Characteristics& entry = input.entries[i];
    const analysis::ScalingPoint point = analysis::ScalingOf(entry);
    Json item = EntryIdentity(entry.entry);
    if (entry.entry.units() > 0) item["units"] = entry.entry.units();
    if (entry.batch_size) item["batch_size"] = std::llround(*entry.batch_size);
    Set(&item, "communication_intensity", entry.communication_intensity());
    SetMoments(&item, "epochs", entry.epochs);
    Set(&item, "steps", point.steps);
    Set(&item, "train_samples_per_second", point.train_samples_per_s);
    Set(&item, "eval_samples_per_second", point.eval_samples_per_s);
    Set(&item, "samples_per_second", point.samples_per_s);
    Set(&item, "epochs_per_hour", point.epochs_per_h);
    Set(&item, "compute_minutes", point.compute_minutes);
    if (efficiencies[i]) {
      item["scaling_efficiency_percent"] = efficiencies[i]->share * 100;
      item["scaling_base"] = EntryLabel(input.entries[efficiencies[i]->base].entry);
      SetText(&item, "efficiency", Fixed(efficiencies[i]->share * 100, 1));
    }
    SetText(&item, "intensity", Fixed(entry.communication_intensity(), 2));
    SetText(&item, "epochs", WithSpread(entry.epochs, 1));
    SetText(&item, "steps", Fixed(point.steps, 0));
    SetText(&item, "train", Fixed(point.train_samples_per_s, 0));
    SetText(&item, "eval", Fixed(point.eval_samples_per_s, 0));
    SetText(&item, "both", Fixed(point.samples_per_s, 0));
    SetText(&item, "rate", Fixed(point.epochs_per_h, 1));
    SetText(&item, "compute", Fixed(point.compute_minutes, 1));
    SetNotes(&item, entry.notes);
    table.items.push_back(std::move(item));
  }
  return table;
}

AnalysisTable EpochTable(const AnalysisInput& input) {
  AnalysisTable table = {.schema = "assay.epoch_scaling/v1",
                         .people = {{"BENCHMARK", "benchmark"},
                                    {"DIVISION", "division"},
                                    {"BATCH", "batch_size", Format::kNumber},
                                    {"EPOCHS", "epochs_text", Format::kNumber},
                                    {"RUNS", "run_count", Format::kNumber, 1},
                                    {"ENTRIES", "systems", Format::kText, 2}},
                         .programs = {{"", "benchmark"},
                                      {"", "division"},
                                      {"", "batch_size"},
                                      {"", "epochs"},
                                      {"", "epochs_sd"},
                                      {"", "run_count"},
                                      {"", "systems"}}};
  std::vector<std::pair<std::string, std::string>> groups;
  for (const Characteristics& entry : input.entries) {
    const std::pair<std::string, std::string> group = {entry.entry.benchmark, entry.entry.division};
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  for (const auto& group : groups) {
    std::vector<Characteristics> members;
    for (const Characteristics& entry : input.entries)
      if (entry.entry.benchmark == group.first && entry.entry.division == group.second)
        members.push_back(entry);
    for (const analysis::EpochsAtBatch& at : analysis::EpochScaling(members)) {
      Json item = {{"benchmark", group.first}, {"division", group.second}};
      item["batch_size"] = std::llround(at.batch_size);
      SetMoments(&item, "epochs", at.epochs);
      item["run_count"] = at.epochs.count;
      item["systems"] = at.systems;
      SetText(&item, "epochs", WithSpread(at.epochs, 2));
      table.items.push_back(std::move(item));
    }
  }
  return table;
}

absl::Status PrintTable(const Context& context, AnalysisTable table) {
  const Printer& printer = context.printer();
  ListView view{.schema = table.schema,
                .columns = printer.IsStructured() ? table.programs : table.people,
                .empty_text = "no entry has what this table shows"};
  for (Json& item : table.items) {
    if (!printer.IsStructured()) {
      if (!printer.style().is_utf8()) SpellOut(&item);
      view.items.push_back(std::move(item));
      continue;
    }
    Json plain = Json::object();
    for (const auto& [field, value] : item.items())
      if (!absl::EndsWith(field, "_text")) plain[field] = value;
    view.items.push_back(std::move(plain));
  }
  RETURN_IF_ERROR(printer.List(view));
  if (printer.IsStructured()) return absl::OkStatus();
  bool is_first = true;
  for (const Json& item : view.items) {
    if (!item.contains("note")) continue;
    context.out() << (std::exchange(is_first, false) ? "\n" : "")
                  << client::RawText(item["benchmark"]) << " " << client::RawText(item["label"])
                  << ": " << client::RawText(item["note"]) << "\n";
  }
  return absl::OkStatus();
}

}  // namespace assay::cli
