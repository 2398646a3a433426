#include "cli/history/history_trend.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "cli/command/context.h"
#include "cli/command/filter_terms.h"
#include "common/analysis/compatibility.h"
#include "common/client/set_history.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr int64_t kTrendEntriesMax = 10'000;

analysis::TrendBy TrendGroupOf(const std::string& text) {
  if (text == "organization") return analysis::TrendBy::kOrganization;
  if (text == "system") return analysis::TrendBy::kSystem;
  return analysis::TrendBy::kBenchmark;
}

// "2.31 times as fast", "- (not comparable)".
std::string StepText(const Json& item) {
  if (item.contains("speedup"))
    return absl::StrFormat("%.2f times as fast", item["speedup"].get<double>());
  return item.contains("break") ? "not comparable" : "";
}

std::string TrendResultText(const Json& item) {
  const auto minutes = item.find("minutes");
  if (minutes != item.end()) return absl::StrFormat("%.2f min", minutes->get<double>());
  return absl::StrFormat("%.4g models/min", item["models_per_minute"].get<double>());
}

absl::StatusOr<ExitStatus> RunTrend(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const std::vector<v1::Submission> entries,
                   FindEntries(*client, FilterOf(arguments.All("FILTER")), kTrendEntriesMax));
  std::vector<analysis::NotedEntry> noted;
  for (const v1::Submission& entry : entries)
    noted.push_back(client::NotedEntryOf(entry));
  const std::vector<analysis::Trend> trends = TrendsOf(
      client::RoundResultsOf(entries, analysis::Aliases(noted)), TrendGroupOf(arguments.Get("by")));
  ListView view{.schema = "assay.trend/v1",
                .columns = {{"BENCHMARK", "benchmark"},
                            {"DIVISION", "division", Format::kText, 2},
                            {"OF", "of"},
                            {"ROUND", "round"},
                            {"BEST", "result_text", Format::kNumber},
                            {"ENTRY", "entry", Format::kText, 3},
                            {"ORGANIZATION", "organization", Format::kText, 4},
                            {"SYSTEM", "system", Format::kText, 5},
                            {"OF RESULTS", "result_count", Format::kNumber, 6},
                            {"TO THE ROUND BEFORE", "step_text"}},
                .empty_text = "no entry has a result"};
  bool has_break = false;
  bool has_ratio = false;
  for (const analysis::Trend& trend : trends) {
    for (Json item : client::TrendJson(trend)) {
      has_break = has_break || item.contains("break");
      has_ratio = has_ratio || item.contains("speedup");
      if (!context->printer().IsJson()) {
        item["result_text"] = TrendResultText(item);
        item["step_text"] = StepText(item);
      }
      view.items.push_back(std::move(item));
    }
  }
  RETURN_IF_ERROR(context->printer().List(view));
  if (has_break)
    context->Note(absl::StrCat("not comparable by the ", analysis::kCompatibilitySource));
  if (has_ratio)
    context->Note(
        "ratios are derived from results, whatever their scale; MLCommons has not "
        "verified them");
  return ExitStatus::kDone;
}

}  // namespace

std::vector<Command> HistoryTrendCommands() {
  return {
      {.path = "history trend",
       .summary = "the best result of each round beside that of the round before",
       .description =
           "By benchmark, division and metric. A trend breaks between rounds that MLCommons' "
           "compatibility table does not join; of HPC it joins one benchmark's 0.7 and 1.0, and "
           "ends before 2.0. Organisations and systems go by their aliases ('history alias').",
       .positionals = {FilterPositional()},
       .options = {{.name = "by",
                    .kind = Option::Kind::kChoice,
                    .value = "GROUP",
                    .help = "whose best result",
                    .choices = {"benchmark", "organization", "system"},
                    .fallback = "benchmark"}},
       .examples = {{"assay history trend division=closed", ""},
                    {"assay history trend round=v1.0 --by organization", ""}},
       .run = RunTrend}};
}

}  // namespace assay::cli
