#include "cli/analyze/analyze.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "cli/analyze/analysis_input.h"
#include "cli/analyze/analyze_tables.h"
#include "cli/analyze/characterise.h"
#include "cli/analyze/figures.h"
#include "cli/terminal/plot.h"
#include "common/analysis/flops.h"
#include "common/analysis/published.h"
#include "common/client/suggest.h"
#include "common/rules/reference_values.h"
#include "common/status.h"

namespace assay::cli {
namespace {

using analysis::Characteristics;

// --------------------------------------------------------------------------------- tables, figures

using MakeTable = AnalysisTable (*)(const AnalysisInput& input);
using MakeFigure = absl::StatusOr<Figure> (*)(std::span<const Characteristics> entries);

absl::StatusOr<ExitStatus> RunTable(Context* context, const Arguments& arguments, MakeTable table,
                                    MakeFigure figure) {
  ASSIGN_OR_RETURN(const AnalysisInput input, ReadAnalysisInput(context, arguments));
  RETURN_IF_ERROR(PrintTable(*context, table(input)));
  if (figure == nullptr || !arguments.Has("plot")) return ExitStatus::kDone;
  const std::string path = arguments.Get("plot");
  ASSIGN_OR_RETURN(const Figure drawing, figure(input.entries));
  RETURN_IF_ERROR(Draw(context->env(), drawing, path));
  context->Note(absl::StrCat("drawn: ", path));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunBreakdown(Context* context, const Arguments& arguments) {
  return RunTable(context, arguments, BreakdownTable, BreakdownFigure);
}

absl::StatusOr<ExitStatus> RunStaging(Context* context, const Arguments& arguments) {
  return RunTable(context, arguments, StagingTable, nullptr);
}

absl::StatusOr<ExitStatus> RunCompute(Context* context, const Arguments& arguments) {
  return RunTable(context, arguments, ComputeTable, nullptr);
}

absl::StatusOr<ExitStatus> RunScaling(Context* context, const Arguments& arguments) {
  return RunTable(context, arguments, ScalingTable, ScalingFigure);
}

absl::StatusOr<ExitStatus> RunEpochs(Context* context, const Arguments& arguments) {
  return RunTable(context, arguments, EpochTable, nullptr);
}

// ------------------------------------------------------------------------------------- prediction

// A number above 0; nullopt if it was not given.
absl::StatusOr<std::optional<double>> PositiveNumber(const Arguments& arguments,
                                                     const std::string& name) {
  if (!arguments.Has(name)) return std::optional<double>();
  double value = 0;
  if (!absl::SimpleAtod(arguments.Get(name), &value) || !std::isfinite(value) || value <= 0)
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, " must be a number above 0, not '", arguments.Get(name), "'"));
  return std::optional<double>(value);
}

absl::StatusOr<const Characteristics*> BaseEntry(const AnalysisInput& input,
                                                 const std::string& system) {
  std::vector<std::string> known;
  for (const Characteristics& entry : input.entries) {
    if (entry.entry.system == system || EntryLabel(entry.entry) == system) return &entry;
    known.push_back(EntryLabel(entry.entry));
  }
  return absl::NotFoundError(absl::StrCat("no entry is of system '", system, "'",
                                          client::DidYouMean(system, known), "; there are ",
                                          absl::StrJoin(known, ", ")));
}

Json PredictionJson(const Characteristics& base, double batch_size,
                    const analysis::Prediction& prediction) {
  Json json = EntryIdentity(base.entry);
  json["batch_size"] = batch_size;
  json["units"] = prediction.units;
  json["epochs"] = prediction.epochs.mean;
  json["epochs_sd"] = prediction.epochs.sd;
  json["epochs_basis"] = prediction.epochs.basis;
  json["epoch_seconds"] = prediction.epoch_s;
  json["staging_minutes"] = prediction.staging_minutes;
  json["compute_minutes"] = prediction.compute_minutes;
  json["minutes"] = prediction.minutes;
  json["minutes_sd"] = prediction.sd_minutes;
  json["budget_unit_hours"] = prediction.minutes * prediction.units / 60;
  json["assumptions"] = prediction.assumptions;
  return json;
}

absl::StatusOr<ExitStatus> RunPredict(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const std::optional<double> batch_size, PositiveNumber(arguments, "batch"));
  analysis::Configuration configuration{.batch_size = batch_size.value_or(0)};
  ASSIGN_OR_RETURN(configuration.epochs, PositiveNumber(arguments, "epochs"));
  ASSIGN_OR_RETURN(configuration.epoch_s, PositiveNumber(arguments, "epoch-seconds"));
  ASSIGN_OR_RETURN(configuration.units, PositiveNumber(arguments, "units"));
  ASSIGN_OR_RETURN(const AnalysisInput input, ReadAnalysisInput(context, arguments));
  ASSIGN_OR_RETURN(const Characteristics* base, BaseEntry(input, arguments.Get("system")));
  std::vector<Characteristics> comparable;
  for (const Characteristics& entry : input.entries)
    if (entry.entry.benchmark == base->entry.benchmark &&
        entry.entry.division == base->entry.division)
      comparable.push_back(entry);
  ASSIGN_OR_RETURN(const analysis::Prediction prediction,
                   analysis::Predict(*base, analysis::EpochScaling(comparable), configuration));
  ShowView view{.schema = "assay.prediction/v1",
                .value = PredictionJson(*base, configuration.batch_size, prediction),
                .fields = {{"benchmark", "benchmark"},
                           {"from", "label"},
                           {"batch size", "batch_size", Format::kNumber},
                           {"units", "units", Format::kNumber},
                           {"epochs", "epochs", Format::kNumber},
                           {"epochs sd", "epochs_sd", Format::kNumber},
                           {"epochs are", "epochs_basis"},
                           {"epoch", "epoch_seconds", Format::kSeconds},
                           {"staging", "staging_minutes", Format::kMinutes},
                           {"compute", "compute_minutes", Format::kMinutes},
                           {"time to solution", "minutes", Format::kMinutes},
                           {"its sd", "minutes_sd", Format::kMinutes},
                           {"budget [unit h]", "budget_unit_hours", Format::kNumber}}};
  if (!context->printer().IsStructured()) view.value["epochs_basis"] = prediction.epochs.basis;
  RETURN_IF_ERROR(context->printer().Show(view));
  for (const std::string& assumption : prediction.assumptions)
    if (!context->printer().IsStructured()) context->out() << "assuming: " << assumption << "\n";
  return ExitStatus::kDone;
}

// ------------------------------------------------------------------------------------- efficiency

struct Yardstick {
  std::optional<double> peak_tflops;  // of all units, if the user says so
  int sensitivity = analysis::kQualitySensitivity;
};

// Of the model that the entry trained: the reference's in MLPerf's rounds, the round's own size of
// CosmoFlow in a facility's.
std::optional<analysis::SampleFlops> FlopsOf(const AnalysisInput& input,
                                             const std::string& benchmark) {
  if (!input.is_round_known) return std::nullopt;
  if (input.rules->data().is_mlperf) {
    const rules::Benchmark* known = input.rules->FindBenchmark(benchmark);
    return known == nullptr ? std::nullopt : analysis::ReferenceFlops(*known);
  }
  const rules::Hyperparameters fixed = rules::ReferenceHyperparameters(*input.rules, benchmark);
  const auto edge = fixed.find("cube_edge");
  const auto filters = fixed.find("base_filter_count");
  if (benchmark != "cosmoflow" || edge == fixed.end() || filters == fixed.end())
    return std::nullopt;
  return analysis::CosmoflowFlops(
      {.edge = static_cast<int>(edge->second.AsInt64().value_or(0)),
       .filters = static_cast<int>(filters->second.AsInt64().value_or(0))});
}

Json EfficiencyJson(const AnalysisInput& input, const Characteristics& entry,
                    const Yardstick& yardstick) {
  constexpr double kTera = 1e12;
  constexpr double kGiga = 1e9;
  Json item = EntryIdentity(entry.entry);
  std::vector<std::string> notes = entry.notes;
  const rules::Benchmark* benchmark = input.rules->FindBenchmark(entry.entry.benchmark);
  const std::optional<analysis::SampleFlops> flops = FlopsOf(input, entry.entry.benchmark);
  std::optional<double> peak = yardstick.peak_tflops;
  if (!peak) {
    const std::optional<analysis::PeakRate> known = analysis::PeakOf(entry.entry.unit_model);
    if (known) peak = known->tflops;
    if (known) item["peak_precision"] = known->precision;
    if (!known) notes.push_back("no peak is known of its units: give it with --peak-tflops");
  }
  if (entry.entry.units() > 0) item["units"] = entry.entry.units();
  if (!entry.entry.unit_model.empty()) item["unit_model"] = entry.entry.unit_model;
  if (!flops) notes.push_back("the FLOPs of a sample of this model are not known");
  if (flops && benchmark != nullptr) {
    const std::optional<analysis::Efficiency> efficiency =
        analysis::EfficiencyOf(entry, *flops, *benchmark, peak, yardstick.sensitivity);
    item["train_gflop_per_sample"] = flops->train / kGiga;
    item["eval_gflop_per_sample"] = flops->eval / kGiga;
    if (efficiency) {
      item["run_pflop"] = efficiency->run_flops / kTera / 1000;
      item["tflops"] = efficiency->tflops_per_s;
      item["quality_factor"] = efficiency->quality_factor;
      item["valid_tflops"] = efficiency->valid_tflops_per_s;
      if (peak) item["peak_tflops_per_unit"] = *peak;
      if (efficiency->utilisation) item["utilisation_percent"] = *efficiency->utilisation * 100;
    }
    if (entry.entry.division == "open")
      notes.push_back("the reference model's FLOPs: an open entry may have changed the model");
  }
  if (!notes.empty()) item["note"] = absl::StrJoin(notes, "; ");
  return item;
}

absl::StatusOr<ExitStatus> RunUtilisation(Context* context, const Arguments& arguments) {
  Yardstick yardstick;
  ASSIGN_OR_RETURN(yardstick.peak_tflops, PositiveNumber(arguments, "peak-tflops"));
  ASSIGN_OR_RETURN(const int64_t sensitivity,
                   arguments.Integer("sensitivity", analysis::kQualitySensitivity));
  constexpr int64_t kSensitivityMax = 100;
  if (sensitivity < 1 || sensitivity > kSensitivityMax)
    return absl::InvalidArgumentError("--sensitivity must be from 1 to 100");
  yardstick.sensitivity = static_cast<int>(sensitivity);
  ASSIGN_OR_RETURN(const AnalysisInput input, ReadAnalysisInput(context, arguments));
  AnalysisTable table = {.schema = "assay.utilisation/v1",
                         .people = {{"BENCHMARK", "benchmark"},
                                    {"ENTRY", "label"},
                                    {"UNITS", "units", Format::kNumber, 3},
                                    {"MODEL", "unit_model", Format::kText, 4},
                                    {"GFLOP/SAMPLE", "train_gflop_per_sample", Format::kNumber, 5},
                                    {"TFLOP/s", "tflops", Format::kNumber},
                                    {"PEAK/UNIT", "peak_tflops_per_unit", Format::kNumber, 2},
                                    {"AT", "peak_precision", Format::kText, 3},
                                    {"OF PEAK %", "utilisation_percent", Format::kNumber},
                                    {"QUALITY", "quality_factor", Format::kNumber},
                                    {"VALID TFLOP/s", "valid_tflops", Format::kNumber}}};
  for (const char* field : {"benchmark", "organization", "system", "division", "label", "units",
                            "unit_model", "train_gflop_per_sample", "eval_gflop_per_sample",
                            "run_pflop", "tflops", "peak_tflops_per_unit", "peak_precision",
                            "utilisation_percent", "quality_factor", "valid_tflops", "note"})
    table.programs.push_back({"", field});
  for (const Characteristics& entry : input.entries)
    table.items.push_back(EfficiencyJson(input, entry, yardstick));
  RETURN_IF_ERROR(PrintTable(*context, std::move(table)));
  return ExitStatus::kDone;
}

// -------------------------------------------------------------------------------------- the paper

absl::StatusOr<ExitStatus> RunPublished(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const AnalysisInput input, ReadAnalysisInput(context, arguments));
  ListView view{.schema = "assay.published_number/v1",
                .columns = {{"PLACE", "place"},
                            {"ENTRY", "subject"},
                            {"QUANTITY", "quantity"},
                            {"PRINTED", "printed", Format::kNumber},
                            {"COMPUTED", "computed", Format::kNumber},
                            {"EQUAL", "is_equal", Format::kYesNo},
                            {"WHY", "why", Format::kText, 1}}};
  int64_t computed = 0;
  int64_t equal = 0;
  for (const analysis::PublishedNumber& number : analysis::CompareWithPaper(input.entries)) {
    if (!number.computed) continue;
    ++computed;
    equal += number.is_equal ? 1 : 0;
    if (arguments.Has("differences") && number.is_equal) continue;
    Json item = {{"place", number.place}};
    if (!number.subject.empty()) item["subject"] = number.subject;
    item["quantity"] = number.quantity;
    item["printed"] = number.printed;
    item["computed"] = *number.computed;
    item["rounded"] = number.rounded;
    item["is_equal"] = number.is_equal;
    if (!number.why.empty()) item["why"] = number.why;
    if (!context->printer().IsStructured()) item["computed"] = number.rounded;
    view.items.push_back(std::move(item));
  }
  if (computed == 0)
    return absl::NotFoundError("none of these entries stands in the paper: it is about round v0.7");
  RETURN_IF_ERROR(context->printer().List(view));
  context->Note(absl::StrCat(equal, " of ", computed,
                             " printed numbers follow from these logs, to every digit"));
  return ExitStatus::kDone;
}

Option Plot() {
  return {.name = "plot",
          .kind = Option::Kind::kText,
          .value = "FILE",
          .help = "draw the figure as well, into an .svg, .png or .pdf file (takes gnuplot)"};
}

Option Number(const std::string& name, const std::string& help) {
  return {.name = name, .kind = Option::Kind::kText, .value = "NUMBER", .help = help};
}

std::vector<Option> WithAnalysisOptions(const std::vector<Option>& more) {
  std::vector<Option> options = AnalysisOptions();
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

Command PredictCommand() {
  Option system = Number("system", "the entry to extrapolate from, by its system or label");
  system.value = "SYSTEM";
  system.is_required = true;
  Option batch = Number("batch", "global batch size to predict for");
  batch.is_required = true;
  return {.path = "analyze predict",
          .summary = "time to solution of a configuration that was not run",
          .description =
              "Joins epoch scaling and throughput scaling on the batch size. The epochs are what "
              "entries of the same benchmark and division took at that batch size, or lie between "
              "those of its neighbours. The epoch time is measured (--epoch-seconds) or follows "
              "from weak scaling: each unit keeps its batch and its throughput, and the machine "
              "grows with the batch.",
          .positionals = {AnalysisPositional()},
          .options = WithAnalysisOptions(
              {system, batch, Number("epochs", "epochs to solution, where they are known"),
               Number("epoch-seconds", "a measured epoch time at that batch size"),
               Number("units", "accelerators or processors it was measured with")}),
          .examples = {{"assay analyze predict hpc_results_v0.7 --round v0.7 --system "
                        "daint_gpu_n128_tf2.2.0 --batch 512",
                        "Piz Daint on 256 nodes, from 128"}},
          .run = RunPredict};
}

Command UtilisationCommand() {
  return {.path = "analyze utilisation",
          .summary = "FLOPS, valid FLOPS and the share of the hardware's peak",
          .description =
              "FLOPs are those of the reference model's convolutions and matrix products, in "
              "training and evaluation. The share of the peak is what MLPerf recommends: FLOPs of "
              "the model / (peak * run time). Valid FLOPS (HPC AI500) multiply FLOPS with "
              "(quality / target)^n, where a lower quality is better with (target / quality)^n. "
              "Neither is an MLPerf result.",
          .positionals = {AnalysisPositional()},
          .options = WithAnalysisOptions(
              {Number("peak-tflops", "peak of a unit; else from a table of data sheets"),
               {.name = "sensitivity",
                .kind = Option::Kind::kInteger,
                .value = "N",
                .help = "n: how much a missed quality costs",
                .fallback = "5"}}),
          .examples = {{"assay analyze utilisation hpc_results_v0.7 --round v0.7", ""}},
          .run = RunUtilisation};
}

Command PublishedCommand() {
  return {.path = "analyze published",
          .summary = "every number of the MLPerf HPC paper beside what the v0.7 logs give",
          .description = "Where a number differs, the last column says why.",
          .positionals = {AnalysisPositional()},
          .options = WithAnalysisOptions({{.name = "differences", .help = "only what differs"}}),
          .examples = {{"assay analyze published hpc_results_v0.7 --round v0.7 --differences", ""}},
          .run = RunPublished};
}

}  // namespace

std::vector<Command> AnalyzeCommands() {
  const std::vector<Positional> what = {AnalysisPositional()};
  return {
      {.path = "analyze breakdown",
       .summary = "shares of staging, evaluation and training in the time to solution",
       .description = "Figure 1 of the MLPerf HPC paper, with equation 2's estimate of the share "
                      "of staging. As in all tables of the paper, the fastest and the slowest run "
                      "are left out.",
       .positionals = what,
       .options = WithAnalysisOptions({Plot()}),
       .examples = {{"assay analyze breakdown hpc_results_v0.7 --round v0.7 --plot figure1.svg",
                     ""},
                    {"assay analyze breakdown e-42", "of an entry on the coordinator"}},
       .run = RunBreakdown},
      {.path = "analyze staging",
       .summary = "staging time, and how many epochs it is worth",
       .description = "Table 5 of the MLPerf HPC paper.",
       .positionals = what,
       .options = AnalysisOptions(),
       .examples = {{"assay analyze staging hpc_results_v0.7 --round v0.7", ""}},
       .run = RunStaging},
      {.path = "analyze compute",
       .summary = "batch, epochs, throughput for each unit, time to solution, budget",
       .description = "Table 6 of the MLPerf HPC paper, for all entries. A unit is an accelerator, "
                      "or a processor where there are none. The time is the score, its spread that "
                      "of the runs that count.",
       .positionals = what,
       .options = AnalysisOptions(),
       .examples = {{"assay analyze compute hpc_results_v0.7 --round v0.7 -o csv", ""}},
       .run = RunCompute},
      {.path = "analyze scaling",
       .summary = "epoch scaling, throughput scaling and what comes of both",
       .description = "Figure 2 of the MLPerf HPC paper. The efficiency is the training throughput "
                      "of a unit in per cent of that of the smallest entry of the same benchmark, "
                      "organisation and kind of unit.",
       .positionals = what,
       .options = WithAnalysisOptions({Plot()}),
       .examples = {{"assay analyze scaling hpc_results_v0.7 --round v0.7 --benchmark cosmoflow "
                     "--plot figure2.svg",
                     ""}},
       .run = RunScaling},
      {.path = "analyze epochs",
       .summary = "epochs to solution by batch size, whatever the system",
       .positionals = what,
       .options = AnalysisOptions(),
       .examples = {{"assay analyze epochs hpc_results_v0.7 --round v0.7 --division closed", ""}},
       .run = RunEpochs},
      PredictCommand(),
      UtilisationCommand(),
      CharacteriseCommand(),
      PublishedCommand()};
}

}  // namespace assay::cli
