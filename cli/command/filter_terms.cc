#include "cli/command/filter_terms.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"

#include "common/client/history.h"
#include "common/client/pages.h"
#include "common/status.h"

namespace assay::cli {
namespace {

// The coordinator knows which names are of one round.
std::string RoundAsWritten(absl::string_view value) {
  return std::string(value);
}

std::string AsTerm(const std::string& argument) {
  const size_t equals = argument.find('=');
  if (equals == std::string::npos) return argument;
  const absl::string_view value = absl::string_view(argument).substr(equals + 1);
  const bool is_plain = value.find_first_of("\"'()<>=!:\\") == absl::string_view::npos;
  const bool is_spaced = absl::StrContains(value, ' ') && !absl::StrContains(value, " OR ") &&
                         !absl::StrContains(value, " AND ") && !absl::StrContains(value, " NOT ");
  if (!is_plain || !is_spaced || argument.substr(0, equals).find(' ') != std::string::npos)
    return argument;
  return absl::StrCat(argument.substr(0, equals), "=\"", value, "\"");
}

std::string InQuotes(const std::string& value) {
  return absl::StrCat("\"", absl::StrReplaceAll(value, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

// Rounds that every matching row would have to be of.
void AddRounds(const FilterNode& filter, std::vector<std::string>* rounds) {
  if (filter.kind == FilterNode::Kind::kNot) return;
  for (const FilterNode& part : filter.parts)
    AddRounds(part, rounds);
  const Restriction& restriction = filter.restriction;
  if (filter.kind == FilterNode::Kind::kRestriction && restriction.field == "round" &&
      restriction.comparator == Comparator::kEqual && !absl::StrContains(restriction.text, '*'))
    rounds->push_back(restriction.text);
}

// The ids of what matches.
absl::StatusOr<std::vector<std::string>> FindIds(const client::Client& client, HistoryKind kind,
                                                 const client::MatchQuestion& question) {
  RETURN_IF_ERROR(ReadFilter(kind, question.filter).status());
  ASSIGN_OR_RETURN(client::Matches matches, client::FindMatches(client, question));
  if (matches.ids.empty()) RETURN_IF_ERROR(CheckNamedRounds(client, kind, matches.filter));
  return std::move(matches.ids);
}

}  // namespace

Positional FilterPositional(const std::string& help) {
  return {.name = "FILTER", .help = help, .is_required = false, .is_repeated = true};
}

std::string FilterOf(std::vector<std::string> terms) {
  std::transform(terms.begin(), terms.end(), terms.begin(), AsTerm);
  return absl::StrJoin(terms, " ");
}

std::string Equality(absl::string_view field, const std::string& value) {
  return absl::StrCat(field, "=", InQuotes(value));
}

absl::StatusOr<std::string> WithFilterOptions(const Arguments& arguments, HistoryKind kind,
                                              const std::string& filter) {
  std::vector<std::string> terms;
  if (!filter.empty()) terms.push_back(filter);
  for (const char* const name :
       {"org", "system", "benchmark", "division", "round", "state", "entry"}) {
    if (!arguments.Has(name) || FindHistoryField(kind, name) == nullptr) continue;
    terms.push_back(Equality(FindHistoryField(kind, name)->name, arguments.Get(name)));
  }
  if (arguments.Has("since")) {
    ASSIGN_OR_RETURN(const absl::Time since, SinceTime(arguments.Get("since")));
    terms.push_back(absl::StrCat(
        "created>=",
        InQuotes(absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", since, absl::UTCTimeZone()))));
  }
  // Alone it stays as it is written, so that positions in errors are right.
  if (terms.size() > 1 && !filter.empty()) terms.front() = absl::StrCat("(", filter, ")");
  return absl::StrJoin(terms, " ");
}

absl::StatusOr<FilterNode> ReadFilter(HistoryKind kind, const std::string& filter) {
  return ParseFilter(filter, HistorySchema(kind, RoundAsWritten), absl::Now());
}

absl::Status CheckNamedRounds(const client::Client& client, HistoryKind kind,
                              const std::string& filter) {
  ASSIGN_OR_RETURN(const FilterNode understood, ReadFilter(kind, filter));
  std::vector<std::string> rounds;
  AddRounds(understood, &rounds);
  return client::CheckRounds(client, rounds);
}

absl::StatusOr<std::vector<v1::Submission>> FindEntries(const client::Client& client,
                                                        const std::string& filter, int64_t limit,
                                                        const std::string& order_by) {
  ASSIGN_OR_RETURN(const std::vector<std::string> ids,
                   FindIds(client, HistoryKind::kEntry,
                           {.kind = v1::QueryResultsRequest::ENTRY,
                            .filter = filter,
                            .order_by = order_by,
                            .limit = limit}));
  std::vector<v1::Submission> entries;
  for (const std::string& id : ids) {
    ASSIGN_OR_RETURN(entries.emplace_back(), client::GetEntry(client, id));
  }
  return entries;
}

absl::StatusOr<std::vector<v1::Run>> FindRuns(const client::Client& client,
                                              const std::string& filter, int64_t limit) {
  ASSIGN_OR_RETURN(
      const std::vector<std::string> ids,
      FindIds(client, HistoryKind::kRun,
              {.kind = v1::QueryResultsRequest::RUN, .filter = filter, .limit = limit}));
  std::vector<v1::Run> runs;
  for (const std::string& id : ids) {
    ASSIGN_OR_RETURN(runs.emplace_back(), client::GetRun(client, id));
  }
  return runs;
}

absl::StatusOr<absl::Time> SinceTime(const std::string& value) {
  absl::Time time;
  std::string error;
  for (const char* format : {"%Y-%m-%d", "%Y-%m-%dT%H:%M:%E*S", "%Y-%m-%dT%H:%M:%E*S%Ez"})
    if (absl::ParseTime(format, value, absl::UTCTimeZone(), &time, &error)) return time;
  const absl::StatusOr<absl::Duration> age = ParseDurationText(value);
  if (!age.ok())
    return absl::InvalidArgumentError(absl::StrCat(
        "--since: '", value, "' is no time; write 2026-11-20, 2026-11-20T08:00:00Z, 12h or 7d"));
  return absl::Now() - *age;
}

Option SinceOption() {
  return {.name = "since",
          .kind = Option::Kind::kText,
          .value = "TIME",
          .help = "not older than this: 2026-11-20, 12h, 7d"};
}

Option ListLimitOption(const std::string& at_terminal) {
  return {
      .name = "limit",
      .letter = 'n',
      .kind = Option::Kind::kInteger,
      .value = "N",
      .help = absl::StrCat("at most so many; default: ", at_terminal, " on a terminal, else all"),
      .min = 1};
}

absl::StatusOr<int64_t> ListLimit(const Context& context, const Arguments& arguments,
                                  int64_t at_terminal) {
  const bool is_for_a_person = context.env().is_out_tty && !context.printer().IsStructured();
  return arguments.Integer("limit",
                           is_for_a_person ? at_terminal : std::numeric_limits<int64_t>::max());
}

void NoteCut(const Context& context, int64_t limit, int64_t total_count) {
  context.Note(absl::StrCat("the newest ", limit,
                            total_count > 0 ? absl::StrCat(" of ", total_count) : "",
                            " are shown; more with --limit N"));
}

}  // namespace assay::cli
