#include "server/store/history_sql.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "server/store/history_fields_sql.h"

namespace assay::store {
namespace {

using Function = HistoryAggregate::Function;

absl::string_view SqlOf(Comparator comparator) {
  switch (comparator) {
    case Comparator::kEqual:
    case Comparator::kHas:
      return " = ";
    case Comparator::kNotEqual:
      return " <> ";
    case Comparator::kLess:
      return " < ";
    case Comparator::kLessEqual:
      return " <= ";
    case Comparator::kGreater:
      return " > ";
    case Comparator::kGreaterEqual:
      return " >= ";
  }
  return " = ";
}

// GLOB knows ? and [] besides *.
std::string GlobOf(absl::string_view pattern) {
  std::string glob;
  for (const char c : pattern) {
    if (c == '?' || c == '[')
      absl::StrAppend(&glob, "[", std::string(1, c), "]");
    else
      glob.push_back(c);
  }
  return glob;
}

SqlText TextSql(absl::string_view value_sql, const Restriction& restriction) {
  SqlText text;
  const bool is_pattern = absl::StrContains(restriction.text, '*');
  if (restriction.comparator == Comparator::kHas) {
    if (!is_pattern)
      return text.Add("instr(").Add(value_sql).Add(", ").Bind(restriction.text).Add(") > 0");
    return text.Add(value_sql).Add(" GLOB ").Bind(absl::StrCat("*", GlobOf(restriction.text), "*"));
  }
  if (!is_pattern)
    return text.Add(value_sql).Add(SqlOf(restriction.comparator)).Bind(restriction.text);
  if (restriction.comparator == Comparator::kNotEqual)
    return text.Add(value_sql).Add(" NOT GLOB ").Bind(GlobOf(restriction.text));
  return text.Add(value_sql).Add(" GLOB ").Bind(GlobOf(restriction.text));
}

SqlText IdSql(const SqlField& field, const Restriction& restriction) {
  absl::string_view digits = restriction.text;
  int64_t number = 0;
  if (restriction.comparator != Comparator::kHas && absl::ConsumePrefix(&digits, field.prefix) &&
      absl::SimpleAtoi(digits, &number))
    return SqlText().Add(field.sql).Add(SqlOf(restriction.comparator)).Bind(number);
  return TextSql(absl::StrCat("('", field.prefix, "' || ", field.sql, ")"), restriction);
}

SqlText NumberSql(absl::string_view value_sql, const Restriction& restriction) {
  SqlText text;
  text.Add(value_sql).Add(SqlOf(restriction.comparator));
  if (const auto* const number = std::get_if<double>(&restriction.value)) return text.Bind(*number);
  if (const auto* const time = std::get_if<absl::Time>(&restriction.value))
    return text.Bind(absl::ToUnixMicros(*time));
  return text.Bind(int64_t{restriction.value == FilterValue(true)});
}

// One of many values. Having none is known.
SqlText ExistsSql(const SqlField& field, const Restriction& restriction) {
  Restriction equal = restriction;
  equal.comparator = Comparator::kEqual;
  SqlText match;
  match.Add("EXISTS (SELECT 1 FROM (")
      .Add(field.sql)
      .Add(") WHERE ")
      .Add(TextSql("v", equal))
      .Add(")");
  if (restriction.comparator != Comparator::kNotEqual) return match;
  return SqlText().Add("(EXISTS (").Add(field.sql).Add(") AND NOT ").Add(match).Add(")");
}

// A number may be meant as a number or as a text.
SqlText KeyedSql(const SqlField& field, const Restriction& restriction) {
  SqlText value;
  if (restriction.text == "*" && restriction.comparator == Comparator::kEqual) {
    value.Add("1");
  } else if (std::holds_alternative<double>(restriction.value)) {
    value.Add("(").Add(NumberSql("h.number", restriction));
    if (restriction.comparator == Comparator::kEqual ||
        restriction.comparator == Comparator::kNotEqual)
      value.Add(" OR ").Add(TextSql("h.text", restriction));
    value.Add(")");
  } else {
    value.Add(TextSql("h.text", restriction));
  }
  constexpr absl::string_view kHasKey =
      " IN (SELECT h.entry_id FROM hyperparameters h WHERE h.key = ";
  SqlText text;
  text.Add("CASE WHEN ").Add(field.sql).Add(kHasKey).Bind(restriction.key);
  text.Add(" AND ").Add(value).Add(") THEN 1 WHEN ").Add(field.sql).Add(kHasKey);
  return text.Bind(restriction.key).Add(") THEN 0 END");
}

SqlText RestrictionSql(HistoryKind kind, const Restriction& restriction) {
  const SqlField& field = SqlFieldOf(kind, restriction.field);
  switch (field.form) {
    case SqlForm::kPlain:
      return std::holds_alternative<double>(restriction.value) ? NumberSql(field.sql, restriction)
                                                               : TextSql(field.sql, restriction);
    case SqlForm::kId:
      return IdSql(field, restriction);
    case SqlForm::kFlag:
    case SqlForm::kMicros:
      return NumberSql(field.sql, restriction);
    case SqlForm::kExists:
      return ExistsSql(field, restriction);
    case SqlForm::kKeyed:
      return KeyedSql(field, restriction);
  }
  return SqlText().Add("0");
}

// True if the condition is never NULL.
bool IsKnown(HistoryKind kind, const FilterNode& filter) {
  if (filter.kind == FilterNode::Kind::kRestriction) {
    const SqlField& field = SqlFieldOf(kind, filter.restriction.field);
    return field.is_never_null || field.form == SqlForm::kExists;
  }
  return std::all_of(filter.parts.begin(), filter.parts.end(),
                     [kind](const FilterNode& part) { return IsKnown(kind, part); });
}

SqlText SourceAndVisible(const HistoryPlan& plan, const core::VisibleTo& viewer) {
  return SqlText()
      .Add(" FROM ")
      .Add(SourceOf(plan.kind).from)
      .Add(" WHERE ")
      .Add(VisibleSql(plan, viewer));
}

SqlText Matching(const HistoryPlan& plan, const core::VisibleTo& viewer) {
  return SourceAndVisible(plan, viewer)
      .Add(" AND ")
      .Add(FilterSql(plan.kind, plan.filter, NotOfAbsent::kTrue));
}

struct OrderKey {
  SqlText value;
  bool is_descending = false;
  bool is_never_null = true;
};

std::vector<OrderKey> KeysOf(const HistoryPlan& plan) {
  std::vector<OrderKey> keys;
  for (const HistoryPlan::Order& order : plan.orders)
    keys.push_back({ValueSql(plan.kind, order.term), order.is_descending,
                    SqlFieldOf(plan.kind, order.term.field->name).is_never_null});
  for (const std::string& key : SourceOf(plan.kind).tie_break) {
    absl::string_view value = key;
    const bool is_descending = absl::ConsumeSuffix(&value, " DESC");
    absl::ConsumeSuffix(&value, " ASC");
    keys.push_back({SqlText().Add(value), is_descending});
  }
  return keys;
}

// Rows after `position`, where what is null comes last, whatever the direction.
SqlText AfterSql(const std::vector<OrderKey>& keys, const HistoryPosition& position) {
  SqlText text;
  text.Add("(");
  bool is_first = true;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (std::holds_alternative<std::monostate>(position[i])) continue;
    if (!std::exchange(is_first, false)) text.Add(" OR ");
    for (size_t k = 0; k < i; ++k)
      text.Add(keys[k].value).Add(" IS ").Bind(position[k]).Add(" AND ");
    const OrderKey& key = keys[i];
    text.Add("(").Add(key.value).Add(key.is_descending ? " < " : " > ").Bind(position[i]);
    if (!key.is_never_null) text.Add(" OR ").Add(key.value).Add(" IS NULL");
    text.Add(")");
  }
  return text.Add(is_first ? "0)" : ")");
}

// Of a map, numbers only.
SqlText NumberOf(HistoryKind kind, const HistoryTerm& term) {
  const SqlField& field = SqlFieldOf(kind, term.field->name);
  if (field.form != SqlForm::kKeyed) return ValueSql(kind, term);
  return SqlText()
      .Add("(SELECT h.number FROM hyperparameters h WHERE h.entry_id = ")
      .Add(field.sql)
      .Add(" AND h.key = ")
      .Bind(term.key)
      .Add(")");
}

SqlText AggregateSql(const HistoryPlan& plan, const HistoryAggregate& aggregate) {
  SqlText text;
  switch (aggregate.function) {
    case Function::kCount:
      if (aggregate.term.field == nullptr) return text.Add("COUNT(*)");
      return text.Add("COUNT(").Add(ValueSql(plan.kind, aggregate.term)).Add(")");
    case Function::kMin:
      return text.Add("MIN(").Add(NumberOf(plan.kind, aggregate.term)).Add(")");
    case Function::kMax:
      return text.Add("MAX(").Add(NumberOf(plan.kind, aggregate.term)).Add(")");
    case Function::kMean:
      return text.Add("AVG(").Add(NumberOf(plan.kind, aggregate.term)).Add(")");
    case Function::kSum:
      return text.Add("SUM(").Add(NumberOf(plan.kind, aggregate.term)).Add(")");
    case Function::kPercentile:
      return text.Add("NULL");
  }
  return text.Add("NULL");
}

}  // namespace

SqlText FilterSql(HistoryKind kind, const FilterNode& filter, NotOfAbsent not_of_absent) {
  SqlText text;
  switch (filter.kind) {
    case FilterNode::Kind::kAll:
    case FilterNode::Kind::kAny: {
      const bool is_all = filter.kind == FilterNode::Kind::kAll;
      if (filter.parts.empty()) return text.Add("1");
      text.Add("(");
      for (size_t i = 0; i < filter.parts.size(); ++i)
        text.Add(i == 0   ? ""
                 : is_all ? " AND "
                          : " OR ")
            .Add(FilterSql(kind, filter.parts[i], not_of_absent));
      return text.Add(")");
    }
    case FilterNode::Kind::kNot:
      text.Add(not_of_absent == NotOfAbsent::kTrue ? "(" : "(NOT ");
      text.Add(FilterSql(kind, filter.parts.front(), not_of_absent));
      return text.Add(not_of_absent == NotOfAbsent::kTrue ? " IS NOT TRUE)" : ")");
    case FilterNode::Kind::kRestriction:
      break;
  }
  return text.Add("(").Add(RestrictionSql(kind, filter.restriction)).Add(")");
}

SqlText VisibleSql(const HistoryPlan& plan, const core::VisibleTo& viewer) {
  const SqlSource& source = SourceOf(plan.kind);
  SqlText text;
  if (viewer.sees_all) return text.Add("1");
  if (source.organization == nullptr) return text.Add(plan.is_private ? "0" : "1");
  text.Add("(0");
  if (viewer.sees_published && !plan.is_private)
    text.Add(" OR ").Add(source.published_at_us).Add(" <= ").Bind(viewer.now_us);
  if (!viewer.organization.empty()) {
    text.Add(" OR ").Add(source.organization).Add(" = ").Bind(viewer.organization);
    // A joint one, of "A+B".
    text.Add(" OR instr('+' || ").Add(source.organization).Add(" || '+', ");
    text.Bind(absl::StrCat("+", viewer.organization, "+")).Add(") > 0");
  }
  return text.Add(")");
}

SqlText ValueSql(HistoryKind kind, const HistoryTerm& term) {
  const SqlField& field = SqlFieldOf(kind, term.field->name);
  SqlText text;
  if (field.form == SqlForm::kKeyed)
    return text.Add("(SELECT COALESCE(h.number, h.text) FROM hyperparameters h WHERE h.entry_id = ")
        .Add(field.sql)
        .Add(" AND h.key = ")
        .Bind(term.key)
        .Add(")");
  if (field.form == SqlForm::kExists)
    return text.Add("(SELECT group_concat(v, char(31)) FROM (").Add(field.sql).Add(" ORDER BY 1))");
  return text.Add(field.sql);
}

SqlText RowsSql(const HistoryPlan& plan, const core::VisibleTo& viewer,
                const HistoryPosition& position) {
  const std::vector<OrderKey> keys = KeysOf(plan);
  SqlText text;
  text.Add("SELECT ");
  for (const HistoryTerm& column : plan.columns)
    text.Add(ValueSql(plan.kind, column)).Add(", ");
  for (size_t i = 0; i < keys.size(); ++i)
    text.Add(i == 0 ? "" : ", ").Add(keys[i].value);
  text.Add(Matching(plan, viewer));
  if (!position.empty()) text.Add(" AND ").Add(AfterSql(keys, position));
  text.Add(" ORDER BY ");
  for (size_t i = 0; i < keys.size(); ++i)
    text.Add(i == 0 ? "" : ", ")
        .Add(absl::StrCat(plan.columns.size() + i + 1, keys[i].is_descending ? " DESC" : " ASC",
                          keys[i].is_never_null ? "" : " NULLS LAST"));
  return text.Add(" LIMIT ").Bind(int64_t{plan.page_size} + 1);
}

SqlText CountSql(const HistoryPlan& plan, const core::VisibleTo& viewer) {
  SqlText text;
  if (IsKnown(plan.kind, plan.filter))
    return text.Add("SELECT COUNT(*), 0").Add(Matching(plan, viewer));
  const SqlText match = FilterSql(plan.kind, plan.filter, NotOfAbsent::kTrue);
  text.Add("SELECT COUNT(*) FILTER (WHERE ").Add(match);
  text.Add("), COUNT(*) FILTER (WHERE ").Add(match).Add(" IS NOT TRUE AND ");
  text.Add(FilterSql(plan.kind, plan.filter, NotOfAbsent::kUnknown)).Add(" IS NULL)");
  text.Add(SourceAndVisible(plan, viewer));
  // What every matching row has, and what is known of every row, is left to the indexes.
  if (plan.filter.kind != FilterNode::Kind::kAll) return text;
  for (const FilterNode& part : plan.filter.parts)
    if (IsKnown(plan.kind, part))
      text.Add(" AND ").Add(FilterSql(plan.kind, part, NotOfAbsent::kTrue));
  return text;
}

SqlText GroupsSql(const HistoryPlan& plan, const core::VisibleTo& viewer, int64_t limit) {
  SqlText text;
  text.Add("SELECT ");
  for (const HistoryTerm& term : plan.groups)
    text.Add(ValueSql(plan.kind, term)).Add(", ");
  for (size_t i = 0; i < plan.aggregates.size(); ++i)
    text.Add(i == 0 ? "" : ", ").Add(AggregateSql(plan, plan.aggregates[i]));
  text.Add(Matching(plan, viewer));
  for (size_t i = 0; i < plan.groups.size(); ++i)
    text.Add(i == 0 ? " GROUP BY " : ", ").Add(absl::StrCat(i + 1));
  return text.Add(" LIMIT ").Bind(limit);
}

SqlText GroupValuesSql(const HistoryPlan& plan, const core::VisibleTo& viewer,
                       const HistoryAggregate& aggregate) {
  const SqlText value = NumberOf(plan.kind, aggregate.term);
  SqlText text;
  text.Add("SELECT ");
  for (const HistoryTerm& term : plan.groups)
    text.Add(ValueSql(plan.kind, term)).Add(", ");
  text.Add(value).Add(Matching(plan, viewer));
  return text.Add(" AND ").Add(value).Add(" IS NOT NULL");
}

}  // namespace assay::store
