#include "cli/entry/compare.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "cli/command/context.h"
#include "cli/command/filter_terms.h"
#include "common/analysis/set_comparison.h"
#include "common/client/comparison.h"
#include "common/client/history.h"
#include "common/client/ids.h"
#include "common/client/set_history.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr size_t kResourcesMax = 10;
constexpr int64_t kSetEntriesMax = 10'000;

// "0.88 (0.84 to 0.92)"
std::string RatioText(const analysis::MeasureComparison& one) {
  if (!one.low) return absl::StrFormat("%.3f", one.ratio);
  return absl::StrFormat("%.3f (%.3f to %.3f)", one.ratio, *one.low, *one.high);
}

// For people: the sentence, and a line for each measure that differs significantly, or of all.
absl::Status PrintComparison(const Context& context, const analysis::SetComparison& comparison,
                             bool is_all) {
  context.out() << "\n" << ComparisonSentence(comparison) << "\n";
  ListView view{.columns = {{"MEASURE", "measure"},
                            {comparison.a, "a", Format::kNumber},
                            {comparison.b, "b", Format::kNumber},
                            {"RATIO", "ratio"}}};
  int folded = 0;
  for (const analysis::MeasureComparison& one : comparison.measures) {
    folded += !one.is_significant() && !is_all ? 1 : 0;
    if (one.is_significant() || is_all)
      view.items.push_back({{"measure", std::string(TextOf(one.measure))},
                            {"a", one.a},
                            {"b", one.b},
                            {"ratio", RatioText(one)}});
  }
  if (!view.items.empty()) {
    context.out() << "\n";
    RETURN_IF_ERROR(context.printer().List(view));
  }
  if (folded > 0)
    context.Note(absl::StrCat(folded, " of ", comparison.measures.size(),
                              " measures do not differ significantly; --all shows them"));
  return absl::OkStatus();
}

bool IsId(const std::string& word) {
  return word.find_first_of("=<>:!() ") == std::string::npos;
}

// The ids as they are given, or those of the entries that a filter finds.
absl::StatusOr<std::vector<std::string>> ComparedIds(const client::Client& client,
                                                     const Arguments& arguments) {
  std::vector<std::string> ids = arguments.All("FILTER");
  if (std::all_of(ids.begin(), ids.end(), IsId)) return ids;
  const std::string filter = FilterOf(arguments.All("FILTER"));
  RETURN_IF_ERROR(ReadFilter(HistoryKind::kEntry, filter).status());
  ASSIGN_OR_RETURN(client::Matches matches,
                   client::FindMatches(client, {.filter = filter, .limit = kResourcesMax + 1}));
  if (matches.ids.empty())
    RETURN_IF_ERROR(CheckNamedRounds(client, HistoryKind::kEntry, matches.filter));
  if (matches.total_count > int64_t{kResourcesMax})
    return absl::InvalidArgumentError(absl::StrCat("the filter finds ", matches.total_count,
                                                   " entries; at most ", kResourcesMax,
                                                   " are compared: narrow it"));
  return std::move(matches.ids);
}

// Two sets of runs that filters choose.
absl::StatusOr<ExitStatus> RunCompareSets(Context* context, const Arguments& arguments) {
  const std::vector<std::string> filters = arguments.All("set");
  if (filters.size() != 2 || arguments.Has("FILTER"))
    return absl::InvalidArgumentError(
        "compare takes --set FILTER twice and nothing else, or entries, runs or one filter");
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  std::vector<std::vector<v1::Submission>> groups;
  Json sets = Json::array();
  for (const std::string& filter : filters) {
    ASSIGN_OR_RETURN(groups.emplace_back(), FindEntries(*client, filter, kSetEntriesMax));
    Json ids = Json::array();
    for (const v1::Submission& entry : groups.back())
      ids.push_back(client::ShortId(entry.name()));
    sets.push_back({{"filter", filter}, {"entries", std::move(ids)}});
  }
  ProgressLine progress(context);
  ASSIGN_OR_RETURN(
      const analysis::SetComparison comparison,
      client::CompareGroups(*client, groups[0], groups[1], [&progress](const std::string& id) {
        progress.Draw("reading " + id);
      }));
  progress.Clear();
  if (context->printer().IsStructured()) {
    Json json = client::SetComparisonJson(comparison);
    json["sets"] = std::move(sets);
    RETURN_IF_ERROR(context->printer().Show({.schema = "assay.set_comparison/v1",
                                             .value = std::move(json),
                                             .fields = {{"SENTENCE", "sentence"}}}));
    return ExitStatus::kDone;
  }
  RETURN_IF_ERROR(PrintComparison(*context, comparison, arguments.Has("all")));
  for (size_t i = 0; i < filters.size(); ++i)
    context->Note(absl::StrCat("set ", i == 0 ? "A" : "B", ": ", groups[i].size(), " entries, ",
                               i == 0 ? comparison.runs_a : comparison.runs_b, " runs, of ",
                               filters[i]));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunCompare(Context* context, const Arguments& arguments) {
  if (arguments.Has("set")) return RunCompareSets(context, arguments);
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const std::vector<std::string> ids, ComparedIds(*client, arguments));
  if (ids.size() < 2 || ids.size() > kResourcesMax)
    return absl::InvalidArgumentError(
        absl::StrCat("compare takes 2 to ", kResourcesMax, " entries or runs, not ", ids.size()));
  if (std::set<std::string>(ids.begin(), ids.end()).size() != ids.size())
    return absl::InvalidArgumentError("compare: an id is given twice");
  ASSIGN_OR_RETURN(const std::vector<Json> resources, client::ReadForComparison(*client, ids));
  ListView view{.schema = "assay.difference/v1",
                .items = client::CompareResources(ids, resources, arguments.Has("all")),
                .columns = {{"FIELD", "field"}},
                .empty_text = "no differences"};
  for (const std::string& id : ids)
    view.columns.push_back({id, id});
  if (ids.size() == 2) view.columns.push_back({"RATIO", "ratio"});
  std::optional<analysis::SetComparison> comparison;
  if (ids.size() == 2 && !absl::StartsWith(ids[0], "r-")) {
    ASSIGN_OR_RETURN(comparison, client::CompareEntries(*client, ids[0], ids[1]));
    if (comparison) view.more["comparison"] = client::SetComparisonJson(*comparison);
  }
  RETURN_IF_ERROR(context->printer().List(view));
  if (comparison && !context->printer().IsStructured())
    RETURN_IF_ERROR(PrintComparison(*context, *comparison, arguments.Has("all")));
  const bool is_different = std::any_of(view.items.begin(), view.items.end(),
                                        [](const Json& row) { return row["differs"].get<bool>(); });
  return arguments.Has("exit-code") && is_different ? ExitStatus::kDifferent : ExitStatus::kDone;
}

}  // namespace

std::vector<Command> CompareCommands() {
  return {
      {.path = "compare",
       .summary = "show what differs between entries or runs",
       .description =
           "One column per id, one line per field. Fields in which all agree are "
           "left out, and so is what every resource has for itself: ids and dates. "
           "Two entries of one benchmark are compared by their sets of runs as well: "
           "time to solution, epochs to target and seconds per epoch, each with the "
           "95 % bootstrap interval of the ratio; what does not differ significantly "
           "is folded. x % faster takes x % less time. Of two, numbers have their ratio, the "
           "second "
           "to the first, and where one direction is better, which of them is. With --set twice "
           "two sets are compared likewise: all runs of the entries that each filter finds.",
       .positionals = {{.name = "FILTER",
                        .help = "two to ten entries (e-42) or runs (r-901), or a filter that "
                                "finds so many entries (assay help query)",
                        .is_required = false,
                        .is_repeated = true}},
       .options = {{.name = "set",
                    .kind = Option::Kind::kText,
                    .value = "FILTER",
                    .help = "twice: the runs of the entries that it finds are a set"},
                   {.name = "all",
                    .help = "fields that agree, and measures that do not differ, too"},
                   {.name = "exit-code", .help = "exit status 10 if anything differs"}},
       .examples = {{"assay compare e-42 e-31", "what changed between two submissions"},
                    {"assay compare round=v1.0 system=Fugaku division=closed", ""},
                    {"assay compare --set 'system=A nodes=64' --set 'system=B nodes=64'",
                     "one machine's runs beside another's"},
                    {"assay compare r-1 r-2 r-3", "why one run took longer"}},
       .run = RunCompare}};
}

}  // namespace assay::cli
