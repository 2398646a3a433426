#include "cli/history/history_series.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "cli/command/context.h"
#include "cli/command/filter_terms.h"
#include "cli/history/history_figure.h"
#include "cli/terminal/sparkline.h"
#include "common/client/set_history.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr int64_t kHistoryEntriesMax = 10'000;
constexpr size_t kSparklineSets = 24;  // the newest

absl::StatusOr<client::SetHistory> ReadSeries(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const std::vector<v1::Submission> entries,
                   FindEntries(*client, FilterOf(arguments.All("FILTER")), kHistoryEntriesMax));
  ProgressLine progress(context);
  return client::ReadSetHistory(*client, entries, {}, [&progress](const std::string& id) {
    progress.Draw(absl::StrCat("reading ", id));
  });
}

// "10.2 to 11.9", "too few: 3 before it".
std::string ExpectedText(const Json& judged) {
  if (!judged.contains("expected_low"))
    return absl::StrCat("too few: ", judged["earlier_sets"].get<int>(), " before it");
  return absl::StrFormat("%.4g to %.4g", judged["expected_low"].get<double>(),
                         judged["expected_high"].get<double>());
}

std::string StandingText(const Json& judged) {
  const std::string standing = judged["standing"].get<std::string>();
  return standing == "too_few" ? "too few" : standing;
}

std::string NewestLine(const Json& sets, bool is_utf8) {
  std::vector<std::optional<double>> values;
  const size_t first = sets.size() - std::min(sets.size(), kSparklineSets);
  for (size_t i = first; i < sets.size(); ++i)
    values.emplace_back(sets[i]["epoch_seconds"].get<double>());
  return Sparkline(values, is_utf8);
}

absl::Status PrintSeriesSets(Context* context, const client::SetHistory& history) {
  ListView view{.schema = "assay.series_set/v1",
                .columns = {{"SERIES", "series", Format::kText, 3},
                            {"SET", "set"},
                            {"TIME", "time", Format::kTime, 2},
                            {"RUNS", "run_count", Format::kNumber, 4},
                            {"S/EPOCH", "epoch_seconds", Format::kNumber},
                            {"EXPECTED", "epoch_seconds_expected"},
                            {"IS", "epoch_seconds_standing"},
                            {"EPOCHS", "epochs", Format::kNumber},
                            {"EXPECTED", "epochs_expected"},
                            {"IS", "epochs_standing"}},
                .empty_text = "no set of runs with a time"};
  for (const analysis::Series& series : history.series) {
    const Json json = client::SeriesJson(series);
    for (Json item : json["sets"]) {
      item["series"] = json["series"];
      for (const char* const measure : {"epoch_seconds", "epochs"}) {
        const Json judged = item[absl::StrCat(measure, "_judged")];
        item[absl::StrCat(measure, "_expected")] = ExpectedText(judged);
        item[absl::StrCat(measure, "_standing")] = StandingText(judged);
      }
      view.items.push_back(std::move(item));
    }
  }
  return context->printer().List(view);
}

absl::Status PrintSeries(Context* context, const client::SetHistory& history) {
  const bool is_json = context->printer().IsJson();
  ListView view{.schema = "assay.series/v1",
                .columns = {{"SERIES", "series"},
                            {"SETS", "set_count", Format::kNumber},
                            {"NEWEST", "newest_set", Format::kText, 1},
                            {"S/EPOCH", "newest_epoch_seconds", Format::kNumber},
                            {"IS", "epoch_seconds_standing"},
                            {"EPOCHS", "newest_epochs", Format::kNumber},
                            {"IS", "epochs_standing"},
                            {"CHANGES", "change_count", Format::kNumber, 2},
                            {"S/EPOCH SO FAR", "line", Format::kText, 3}},
                .empty_text = "no set of runs with a time"};
  for (const analysis::Series& series : history.series) {
    Json item = client::SeriesJson(series);
    const Json newest = item["sets"].back();
    item["newest_set"] = newest["set"];
    item["newest_epoch_seconds"] = newest["epoch_seconds"];
    item["epoch_seconds_standing"] = StandingText(newest["epoch_seconds_judged"]);
    item["newest_epochs"] = newest["epochs"];
    item["epochs_standing"] = StandingText(newest["epochs_judged"]);
    item["changes"] = client::ChangesJson(series, history.views);
    item["change_count"] = item["changes"].size();
    if (!is_json) item["line"] = NewestLine(item["sets"], context->printer().style().is_utf8());
    view.items.push_back(std::move(item));
  }
  return context->printer().List(view);
}

absl::StatusOr<ExitStatus> RunSeries(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::SetHistory history, ReadSeries(context, arguments));
  if (arguments.Has("sets")) {
    RETURN_IF_ERROR(PrintSeriesSets(context, history));
  } else {
    RETURN_IF_ERROR(PrintSeries(context, history));
  }
  if (!arguments.Has("plot")) return ExitStatus::kDone;
  ASSIGN_OR_RETURN(const Figure figure, SeriesFigure(history.series));
  RETURN_IF_ERROR(Draw(context->env(), figure, arguments.Get("plot")));
  context->Note(absl::StrCat("drawn: ", arguments.Get("plot")));
  return ExitStatus::kDone;
}

// "hyperparameters.opt_name sgd -> adam; machines n1 -> n2", or that nothing is known to.
std::string DiffersText(const Json& differs) {
  std::vector<std::string> parts;
  for (const Json& row : differs)
    parts.push_back(absl::StrCat(client::RawText(row["field"]), " ", client::RawText(row["before"]),
                                 " -> ", client::RawText(row["after"])));
  return parts.empty() ? "nothing that is recorded" : absl::StrJoin(parts, "; ");
}

absl::StatusOr<ExitStatus> RunChanges(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::SetHistory history, ReadSeries(context, arguments));
  ListView view{.schema = "assay.change/v1",
                .columns = {{"SERIES", "series", Format::kText, 3},
                            {"MEASURE", "measure"},
                            {"FIRST SET", "first_set"},
                            {"TIME", "time", Format::kTime, 2},
                            {"CHANGE", "change_text", Format::kNumber},
                            {"P", "p_value", Format::kNumber, 4},
                            {"STATE", "state"},
                            {"DIFFERS", "differs_text"},
                            {"AUTHOR", "author", Format::kText, 5},
                            {"REASON", "reason", Format::kText, 1}},
                .empty_text = "no change: none was found, and nobody has marked one"};
  for (const analysis::Series& series : history.series) {
    for (Json item : client::ChangesJson(series, history.views)) {
      const double ratio = item["ratio"].get<double>();
      if (!context->printer().IsJson()) {
        item["change_text"] = absl::StrFormat("%+.1f %%", (ratio - 1) * 100);
        item["differs_text"] = DiffersText(item["differs"]);
      }
      view.items.push_back(std::move(item));
    }
  }
  RETURN_IF_ERROR(context->printer().List(view));
  return ExitStatus::kDone;
}

}  // namespace

std::vector<Command> HistorySeriesCommands() {
  return {
      {.path = "history series",
       .summary = "whether sets are what those before them let expect",
       .description =
           "A series is the sets of runs of one system, benchmark, division, round, scale and "
           "batch, in order of time. Seconds per epoch (all that is on the clock, shared out among "
           "the epochs) tell of the machine and the program, epochs to target of convergence. A "
           "set "
           "is 'lower' or 'higher' if it lies outside of the 99.9 % prediction interval of the "
           "sets "
           "since the last change; 'too few' means that there are fewer than five.",
       .positionals = {FilterPositional()},
       .options = {{.name = "sets", .help = "a line for each set instead of each series"},
                   {.name = "plot",
                    .kind = Option::Kind::kText,
                    .value = "FILE",
                    .help = "draw them as well, into an .svg, .png or .pdf file (takes gnuplot)"}},
       .examples = {{"assay history series system=cluster-a", ""},
                    {"assay history series 'system=cluster-a division=closed' --sets", ""},
                    {"assay history series system=cluster-a --plot series.svg", ""}},
       .run = RunSeries},
      {.path = "history changes",
       .summary = "where the level of a series has changed, and what differs there",
       .description =
           "Found by circular binary segmentation with a permutation test: at least five sets on "
           "each side, at least 2 %, p below 0.001; that takes 14 sets. 'marked' was said by "
           "somebody ('history mark'); 'vetoed' was found, but somebody says that it is none "
           "('history veto'). DIFFERS is what the first set after the change has other than the "
           "one "
           "before it: hyperparameters, settings, rules, machines.",
       .positionals = {FilterPositional()},
       .examples = {{"assay history changes system=cluster-a", ""},
                    {"assay history changes --json=first_set,ratio,differs", ""}},
       .run = RunChanges}};
}

}  // namespace assay::cli
