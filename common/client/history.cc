#include "common/client/history.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "assay/v1/admin_service.pb.h"

#include "common/client/message_json.h"
#include "common/client/suggest.h"
#include "common/status.h"

namespace assay::client {
namespace {

constexpr int64_t kHistoryPageSize = 1000;

struct UnitWord {
  absl::string_view unit;
  absl::string_view word;
};
constexpr UnitWord kUnitWords[] = {
    {"min", "minutes"}, {"s", "seconds"},        {"J", "joules"},       {"ms", "ms"},
    {"bytes", "bytes"}, {"1/min", "per_minute"}, {"samples", "samples"}};

}  // namespace

v1::QueryResultsRequest::Kind ProtoOf(HistoryKind kind) {
  switch (kind) {
    case HistoryKind::kEntry:
      return v1::QueryResultsRequest::ENTRY;
    case HistoryKind::kRun:
      return v1::QueryResultsRequest::RUN;
    case HistoryKind::kFinding:
      return v1::QueryResultsRequest::FINDING;
    case HistoryKind::kWorker:
      return v1::QueryResultsRequest::WORKER;
    case HistoryKind::kHyperparameter:
      return v1::QueryResultsRequest::HYPERPARAMETER;
  }
  return v1::QueryResultsRequest::ENTRY;
}

absl::Status ForEachPage(const Client& client, v1::QueryResultsRequest request, int64_t limit,
                         absl::FunctionRef<absl::Status(v1::QueryResultsResponse page)> take) {
  int64_t count = 0;
  while (true) {
    request.set_page_size(
        static_cast<int32_t>(std::clamp<int64_t>(limit - count, 1, kHistoryPageSize)));
    ASSIGN_OR_RETURN(v1::QueryResultsResponse page, client.CallRetrying(request));
    request.set_page_token(page.next_page_token());
    count += page.rows_size();
    RETURN_IF_ERROR(take(std::move(page)));
    if (request.page_token().empty() || count >= limit) return absl::OkStatus();
  }
}

absl::StatusOr<v1::QueryResultsResponse> AskHistory(const Client& client,
                                                    v1::QueryResultsRequest request,
                                                    int64_t limit) {
  v1::QueryResultsResponse all;
  RETURN_IF_ERROR(
      ForEachPage(client, std::move(request), limit, [&all](v1::QueryResultsResponse page) {
        if (all.columns_size() == 0) {
          all = std::move(page);
          return absl::OkStatus();
        }
        for (v1::QueryRow& row : *page.mutable_rows())
          all.add_rows()->Swap(&row);
        all.set_next_page_token(page.next_page_token());
        return absl::OkStatus();
      }));
  return all;
}

absl::StatusOr<Matches> FindMatches(const Client& client, const MatchQuestion& question) {
  v1::QueryResultsRequest request;
  request.set_kind(question.kind);
  request.set_filter(question.filter);
  request.set_order_by(question.order_by);
  request.add_columns("id");
  ASSIGN_OR_RETURN(const v1::QueryResultsResponse answer,
                   AskHistory(client, request, question.limit));
  Matches matches{.ids = {}, .total_count = answer.total_count(), .filter = answer.filter()};
  for (const v1::QueryRow& row : answer.rows())
    matches.ids.push_back(row.values(0).text());
  return matches;
}

std::string ExportName(absl::string_view column, absl::string_view unit) {
  std::string name;
  for (const char c : column) {
    if (c == '(')
      name.push_back('_');
    else if (c != ')')
      name.push_back(c);
  }
  for (const auto& [of, word] : kUnitWords)
    if (of == unit && !absl::EndsWith(name, word)) absl::StrAppend(&name, "_", word);
  return name;
}

std::string ExportName(const v1::QueryColumn& column) {
  return ExportName(column.name(), column.unit());
}

Json ValueJson(const v1::QueryValue& value) {
  switch (value.value_case()) {
    case v1::QueryValue::kText:
      return value.text();
    case v1::QueryValue::kInteger:
      return value.integer();
    case v1::QueryValue::kNumber:
      return value.number();
    case v1::QueryValue::kTruth:
      return value.truth();
    case v1::QueryValue::kTime:
      return TimeText(value.time());
    case v1::QueryValue::kTexts: {
      Json texts = Json::array();
      for (const std::string& text : value.texts().texts())
        texts.push_back(text);
      return texts;
    }
    case v1::QueryValue::VALUE_NOT_SET:
      return nullptr;
  }
  return nullptr;
}

Json RowsJson(const v1::QueryResultsResponse& response) {
  std::vector<std::string> names;
  for (const v1::QueryColumn& column : response.columns())
    names.push_back(ExportName(column));
  Json rows = Json::array();
  for (const v1::QueryRow& row : response.rows()) {
    Json object = Json::object();
    for (int i = 0; i < row.values_size(); ++i) {
      Json value = ValueJson(row.values(i));
      if (!value.is_null()) object[names[static_cast<size_t>(i)]] = std::move(value);
    }
    rows.push_back(std::move(object));
  }
  return rows;
}

absl::Status CheckRounds(const Client& client, const std::vector<std::string>& rounds) {
  if (rounds.empty()) return absl::OkStatus();
  std::set<std::string> known;
  ASSIGN_OR_RETURN(const v1::ListRoundsResponse listed, client.Call(v1::ListRoundsRequest()));
  for (const v1::Round& round : listed.rounds())
    known.insert(round.name());
  v1::QueryResultsRequest request;
  request.add_group_by("round");
  ASSIGN_OR_RETURN(const v1::QueryResultsResponse present, AskHistory(client, request, 1000));
  for (const v1::QueryRow& row : present.rows())
    known.insert(row.values(0).text());
  const std::vector<std::string> names(known.begin(), known.end());
  for (const std::string& round : rounds)
    if (!known.contains(round))
      return absl::NotFoundError(absl::StrCat("there is no round '", round, "'",
                                              DidYouMean(round, names),
                                              "; rounds: ", absl::StrJoin(names, ", ")));
  return absl::OkStatus();
}

}  // namespace assay::client
