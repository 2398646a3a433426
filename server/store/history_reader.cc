#include "server/store/history_reader.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "common/status.h"
#include "server/store/history_fields_sql.h"
#include "server/store/history_plan.h"
#include "server/store/history_sql.h"
#include "server/store/history_token.h"
#include "server/store/sqlite.h"

namespace assay::store {
namespace {

using HistoryRow = std::vector<SqlValue>;
using AggregateFunction = HistoryAggregate::Function;

core::HistoryValue ToValue(HistoryKind kind, const HistoryField& field, SqlValue value) {
  const SqlField& place = SqlFieldOf(kind, field.name);
  if (std::holds_alternative<std::monostate>(value)) return {};
  const auto* const integer = std::get_if<int64_t>(&value);
  switch (place.form) {
    case SqlForm::kId:
      return absl::StrCat(place.prefix, integer == nullptr ? 0 : *integer);
    case SqlForm::kFlag:
      return integer != nullptr && *integer != 0;
    case SqlForm::kMicros:
      return absl::FromUnixMicros(integer == nullptr ? 0 : *integer);
    case SqlForm::kExists:
      if (const auto* const text = std::get_if<std::string>(&value))
        return std::vector<std::string>(absl::StrSplit(*text, '\x1f'));
      return {};
    case SqlForm::kPlain:
    case SqlForm::kKeyed:
      break;
  }
  if (integer != nullptr && field.type == HistoryType::kNumber)
    return static_cast<double>(*integer);
  if (integer != nullptr) return *integer;
  if (const auto* const number = std::get_if<double>(&value)) return *number;
  return std::get<std::string>(std::move(value));
}

core::HistoryColumn ColumnOf(const HistoryTerm& term) {
  return {.name = ToString(term), .type = term.field->type, .unit = std::string(term.field->unit)};
}

core::HistoryColumn ColumnOf(const HistoryAggregate& aggregate) {
  core::HistoryColumn column{.name = aggregate.text, .type = HistoryType::kNumber, .unit = ""};
  if (aggregate.function == AggregateFunction::kCount) {
    column.type = HistoryType::kInteger;
    return column;
  }
  column.unit = std::string(aggregate.term.field->unit);
  const bool is_average = aggregate.function == AggregateFunction::kMean ||
                          aggregate.function == AggregateFunction::kPercentile;
  if (!is_average && aggregate.term.field->type != HistoryType::kMap)
    column.type = aggregate.term.field->type;
  return column;
}

core::HistoryValue ToValue(HistoryKind kind, const HistoryAggregate& aggregate, SqlValue value) {
  const core::HistoryColumn column = ColumnOf(aggregate);
  if (column.type == HistoryType::kTime) return ToValue(kind, *aggregate.term.field, value);
  if (const auto* const integer = std::get_if<int64_t>(&value)) {
    if (column.type == HistoryType::kNumber) return static_cast<double>(*integer);
    return *integer;
  }
  if (const auto* const number = std::get_if<double>(&value)) return *number;
  return {};
}

// Null last in either direction; numbers before texts.
bool IsBefore(const SqlValue& a, const SqlValue& b, bool is_descending) {
  const bool is_a_null = std::holds_alternative<std::monostate>(a);
  const bool is_b_null = std::holds_alternative<std::monostate>(b);
  if (is_a_null || is_b_null) return !is_a_null && is_b_null;
  const auto number = [](const SqlValue& value) -> std::optional<double> {
    if (const auto* const integer = std::get_if<int64_t>(&value))
      return static_cast<double>(*integer);
    if (const auto* const real = std::get_if<double>(&value)) return *real;
    return std::nullopt;
  };
  const std::optional<double> x = number(a);
  const std::optional<double> y = number(b);
  if (x.has_value() && y.has_value()) return is_descending ? *x > *y : *x < *y;
  if (x.has_value() != y.has_value()) return x.has_value() != is_descending;
  const std::string& text_a = std::get<std::string>(a);
  const std::string& text_b = std::get<std::string>(b);
  return is_descending ? text_a > text_b : text_a < text_b;
}

// Linear between the two nearest, as most tools have it (Hyndman and Fan 1996, type 7).
double Percentile(std::vector<double>* values, double percentile) {
  std::sort(values->begin(), values->end());
  const double at = percentile / 100 * static_cast<double>(values->size() - 1);
  const auto below = static_cast<size_t>(std::floor(at));
  const size_t above = std::min(below + 1, values->size() - 1);
  const double part = at - static_cast<double>(below);
  return (*values)[below] + part * ((*values)[above] - (*values)[below]);
}

// What tells a group from the others.
std::string KeyOf(const HistoryRow& row, size_t count) {
  std::string key;
  for (size_t i = 0; i < count; ++i) {
    if (const auto* const text = std::get_if<std::string>(&row[i]))
      absl::StrAppend(&key, "t", text->size(), ":", *text);
    else if (const auto* const integer = std::get_if<int64_t>(&row[i]))
      absl::StrAppend(&key, "i", *integer, ";");
    else if (const auto* const number = std::get_if<double>(&row[i]))
      key.append("d").append(reinterpret_cast<const char*>(number), sizeof(double));
    else
      key.push_back('n');
  }
  return key;
}

std::string HiddenReason(const HistoryPlan& plan, const core::VisibleTo& viewer,
                         int64_t hidden_count) {
  std::vector<std::string> reasons;
  if (hidden_count > 0)
    reasons.push_back(
        absl::StrCat(hidden_count, hidden_count == 1 ? " row lacks" : " rows lack",
                     " a value that the filter compares, and a comparison with nothing is false"));
  if (viewer.sees_all || SourceOf(plan.kind).organization == nullptr)
    return absl::StrJoin(reasons, "; ");
  reasons.push_back(
      plan.is_private ? "this question names people or nodes: of other organizations nothing is "
                        "shown or counted"
                      : "what other organizations have not published is neither shown nor counted");
  return absl::StrJoin(reasons, "; ");
}

}  // namespace

struct HistoryReader::Connection {
  Db db;
  const Clock* clock;
  MonoTime deadline;

  absl::StatusOr<std::vector<HistoryRow>> Read(const SqlText& text) {
    ASSIGN_OR_RETURN(Stmt stmt, db.Prepare(text.sql));
    RETURN_IF_ERROR(stmt.BindValues(text.values));
    std::vector<HistoryRow> rows;
    while (true) {
      ASSIGN_OR_RETURN(const bool is_row, stmt.Step());
      if (!is_row) return rows;
      HistoryRow& row = rows.emplace_back();
      for (int column = 0; column < stmt.column_count(); ++column)
        row.push_back(stmt.Value(column));
    }
  }

  absl::StatusOr<core::HistoryAnswer> AskRows(const HistoryPlan& plan,
                                              const core::HistoryQuestion& question);
  absl::StatusOr<core::HistoryAnswer> AskGroups(const HistoryPlan& plan,
                                                const core::HistoryQuestion& question);
  absl::Status FillPercentiles(const HistoryPlan& plan, const core::VisibleTo& viewer,
                               std::vector<HistoryRow>* groups);
  absl::StatusOr<HistoryToken> Count(const HistoryPlan& plan, const core::VisibleTo& viewer);
};

absl::StatusOr<HistoryToken> HistoryReader::Connection::Count(const HistoryPlan& plan,
                                                              const core::VisibleTo& viewer) {
  ASSIGN_OR_RETURN(const std::vector<HistoryRow> counts, Read(CountSql(plan, viewer)));
  return HistoryToken{.total_count = std::get<int64_t>(counts.at(0).at(0)),
                      .hidden_count = std::get<int64_t>(counts.at(0).at(1)),
                      .position = {}};
}

absl::StatusOr<core::HistoryAnswer> HistoryReader::Connection::AskRows(
    const HistoryPlan& plan, const core::HistoryQuestion& question) {
  const size_t key_count = plan.orders.size() + SourceOf(plan.kind).tie_break.size();
  HistoryToken token;
  if (question.page_token.empty()) {
    ASSIGN_OR_RETURN(token, Count(plan, question.viewer));
  } else {
    ASSIGN_OR_RETURN(token, ReadHistoryToken(plan.token_hash, question.page_token, key_count));
  }
  ASSIGN_OR_RETURN(std::vector<HistoryRow> rows,
                   Read(RowsSql(plan, question.viewer, token.position)));
  core::HistoryAnswer answer{.total_count = token.total_count, .hidden_count = token.hidden_count};
  for (const HistoryTerm& term : plan.columns)
    answer.columns.push_back(ColumnOf(term));
  if (rows.size() > static_cast<size_t>(plan.page_size)) {
    rows.resize(static_cast<size_t>(plan.page_size));
    token.position.assign(rows.back().end() - static_cast<std::ptrdiff_t>(key_count),
                          rows.back().end());
    answer.next_page_token = WriteHistoryToken(plan.token_hash, token);
  }
  for (HistoryRow& row : rows) {
    std::vector<core::HistoryValue>& values = answer.rows.emplace_back();
    for (size_t i = 0; i < plan.columns.size(); ++i)
      values.push_back(ToValue(plan.kind, *plan.columns[i].field, std::move(row[i])));
  }
  return answer;
}

absl::Status HistoryReader::Connection::FillPercentiles(const HistoryPlan& plan,
                                                        const core::VisibleTo& viewer,
                                                        std::vector<HistoryRow>* groups) {
  const size_t group_count = plan.groups.size();
  std::map<std::string, std::vector<size_t>> by_field;  // aggregates that need the same values
  for (size_t i = 0; i < plan.aggregates.size(); ++i)
    if (plan.aggregates[i].function == AggregateFunction::kPercentile)
      by_field[ToString(plan.aggregates[i].term)].push_back(i);
  for (const auto& [name, aggregates] : by_field) {
    absl::flat_hash_map<std::string, std::vector<double>> values;
    ASSIGN_OR_RETURN(const std::vector<HistoryRow> rows,
                     Read(GroupValuesSql(plan, viewer, plan.aggregates[aggregates.front()])));
    for (const HistoryRow& row : rows) {
      if (const auto* const integer = std::get_if<int64_t>(&row.back()))
        values[KeyOf(row, group_count)].push_back(static_cast<double>(*integer));
      else if (const auto* const number = std::get_if<double>(&row.back()))
        values[KeyOf(row, group_count)].push_back(*number);
    }
    for (HistoryRow& group : *groups) {
      const auto it = values.find(KeyOf(group, group_count));
      if (it == values.end()) continue;
      for (const size_t i : aggregates)
        group[group_count + i] = Percentile(&it->second, plan.aggregates[i].percentile);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<core::HistoryAnswer> HistoryReader::Connection::AskGroups(
    const HistoryPlan& plan, const core::HistoryQuestion& question) {
  HistoryToken token;
  if (question.page_token.empty()) {
    ASSIGN_OR_RETURN(token, Count(plan, question.viewer));
    token.position = {int64_t{0}};
  } else {
    ASSIGN_OR_RETURN(token, ReadHistoryToken(plan.token_hash, question.page_token, 1));
  }
  ASSIGN_OR_RETURN(std::vector<HistoryRow> groups,
                   Read(GroupsSql(plan, question.viewer, kHistoryGroupCountMax + 1)));
  if (std::ssize(groups) > kHistoryGroupCountMax)
    return absl::ResourceExhaustedError(
        absl::StrCat("there are more than ", kHistoryGroupCountMax,
                     " groups: group by fewer fields, or narrow the filter"));
  RETURN_IF_ERROR(FillPercentiles(plan, question.viewer, &groups));
  std::stable_sort(groups.begin(), groups.end(), [&plan](const HistoryRow& a, const HistoryRow& b) {
    for (const HistoryPlan::Order& order : plan.orders) {
      if (IsBefore(a[order.column], b[order.column], order.is_descending)) return true;
      if (IsBefore(b[order.column], a[order.column], order.is_descending)) return false;
    }
    for (size_t i = 0; i < plan.groups.size(); ++i) {
      if (IsBefore(a[i], b[i], false)) return true;
      if (IsBefore(b[i], a[i], false)) return false;
    }
    return false;
  });
  core::HistoryAnswer answer{.total_count = std::ssize(groups), .hidden_count = token.hidden_count};
  for (const HistoryTerm& term : plan.groups)
    answer.columns.push_back(ColumnOf(term));
  for (const HistoryAggregate& aggregate : plan.aggregates)
    answer.columns.push_back(ColumnOf(aggregate));
  const auto* const start = std::get_if<int64_t>(&token.position.front());
  const auto first = static_cast<size_t>(
      std::clamp<int64_t>(start == nullptr ? 0 : *start, 0, std::ssize(groups)));
  const size_t end = std::min(groups.size(), first + static_cast<size_t>(plan.page_size));
  for (size_t k = first; k < end; ++k) {
    std::vector<core::HistoryValue>& values = answer.rows.emplace_back();
    for (size_t i = 0; i < plan.groups.size(); ++i)
      values.push_back(ToValue(plan.kind, *plan.groups[i].field, groups[k][i]));
    for (size_t i = 0; i < plan.aggregates.size(); ++i)
      values.push_back(ToValue(plan.kind, plan.aggregates[i], groups[k][plan.groups.size() + i]));
  }
  if (end < groups.size()) {
    token.position = {static_cast<int64_t>(end)};
    answer.next_page_token = WriteHistoryToken(plan.token_hash, token);
  }
  return answer;
}

HistoryReader::HistoryReader(std::unique_ptr<Connection> connection)
    : connection_(std::move(connection)) {}

HistoryReader::~HistoryReader() = default;

absl::StatusOr<std::unique_ptr<HistoryReader>> HistoryReader::Open(const std::string& path,
                                                                   const Clock* clock) {
  auto connection = std::make_unique<Connection>();
  ASSIGN_OR_RETURN(connection->db, Db::Open(path, OpenMode::kReadOnly));
  connection->clock = clock;
  connection->db.EndWhen(
      [asked = connection.get()] { return asked->clock->Mono() > asked->deadline; });
  return std::unique_ptr<HistoryReader>(new HistoryReader(std::move(connection)));
}

absl::StatusOr<core::HistoryAnswer> HistoryReader::Ask(const core::HistoryQuestion& question) {
  ASSIGN_OR_RETURN(const HistoryPlan plan, MakeHistoryPlan(question));
  connection_->deadline = connection_->clock->Mono() + kHistoryTimeMax;
  absl::StatusOr<core::HistoryAnswer> answer = plan.is_grouped
                                                   ? connection_->AskGroups(plan, question)
                                                   : connection_->AskRows(plan, question);
  if (absl::IsDeadlineExceeded(answer.status()))
    return absl::ResourceExhaustedError(absl::StrCat(
        "the question took more than ", absl::FormatDuration(kHistoryTimeMax),
        " and was ended: narrow it, by round, benchmark, system or time, or ask for the newest "
        "first (no order_by)"));
  RETURN_IF_ERROR(answer.status());
  answer->hidden_reason = HiddenReason(plan, question.viewer, answer->hidden_count);
  answer->filter = FilterText(plan.filter);
  return answer;
}

absl::StatusOr<std::vector<std::string>> HistoryReader::ExplainPlan(
    const core::HistoryQuestion& question) {
  ASSIGN_OR_RETURN(const HistoryPlan plan, MakeHistoryPlan(question));
  connection_->deadline = connection_->clock->Mono() + kHistoryTimeMax;
  std::vector<SqlText> texts;
  if (plan.is_grouped)
    texts = {GroupsSql(plan, question.viewer, kHistoryGroupCountMax)};
  else
    texts = {RowsSql(plan, question.viewer, {}), CountSql(plan, question.viewer)};
  std::vector<std::string> lines;
  for (SqlText& text : texts) {
    text.sql = absl::StrCat("EXPLAIN QUERY PLAN ", text.sql);
    ASSIGN_OR_RETURN(const std::vector<HistoryRow> rows, connection_->Read(text));
    for (const HistoryRow& row : rows)
      lines.push_back(std::get<std::string>(row.at(3)));
  }
  return lines;
}

}  // namespace assay::store
