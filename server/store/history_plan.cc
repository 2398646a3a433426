#include "server/store/history_plan.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "common/printable.h"
#include "common/rules/registry.h"
#include "common/sha256.h"
#include "common/status.h"

namespace assay::store {
namespace {

using Function = HistoryAggregate::Function;

std::string CanonicalRoundName(absl::string_view name) {
  const rules::RuleSet* const known = rules::FindRuleSet(name);
  return known == nullptr ? std::string(name) : known->name();
}

std::string FieldNames(HistoryKind kind) {
  std::vector<std::string> names;
  for (const HistoryField& field : HistoryFields(kind))
    names.push_back(absl::StrCat(field.name, field.type == HistoryType::kMap ? ".KEY" : ""));
  return absl::StrJoin(names, ", ");
}

absl::Status WrongPart(absl::string_view part, size_t at, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(part, ", at ", at, ": ", what));
}

// `at`: where `text` stands in `part`, for the message.
absl::StatusOr<HistoryTerm> ReadTerm(HistoryKind kind, absl::string_view text,
                                     absl::string_view part, size_t at) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('.', 1));
  HistoryTerm term{FindHistoryField(kind, parts.first), std::string(parts.second)};
  if (term.field == nullptr)
    return WrongPart(part, at,
                     absl::StrCat("there is no field '", Printable(parts.first), "' of ",
                                  assay::ToString(kind), "; fields: ", FieldNames(kind)));
  const bool is_map = term.field->type == HistoryType::kMap;
  if (is_map == term.key.empty())
    return WrongPart(
        part, at,
        is_map ? absl::StrCat("'", term.field->name, "' needs a key: ", term.field->name, ".KEY")
               : absl::StrCat("'", term.field->name, "' has no keys"));
  return term;
}

absl::Status CheckCount(size_t count, size_t count_max, absl::string_view part) {
  if (count <= count_max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(part, " has ", count, " parts; at most ", count_max, " are taken"));
}

absl::Status ReadColumns(const core::HistoryQuestion& question, HistoryPlan* plan) {
  RETURN_IF_ERROR(CheckCount(question.columns.size(), kHistoryColumnsMax, "columns"));
  size_t at = 0;
  for (const std::string& name : question.columns) {
    ASSIGN_OR_RETURN(plan->columns.emplace_back(), ReadTerm(plan->kind, name, "columns", at));
    at += name.size() + 1;
  }
  if (!question.columns.empty()) return absl::OkStatus();
  for (const HistoryField& field : HistoryFields(plan->kind))
    if (field.is_usual) plan->columns.push_back({&field, ""});
  return absl::OkStatus();
}

std::optional<std::pair<Function, double>> ReadFunction(absl::string_view name) {
  if (name == "count") return {{Function::kCount, 0}};
  if (name == "min") return {{Function::kMin, 0}};
  if (name == "max") return {{Function::kMax, 0}};
  if (name == "mean") return {{Function::kMean, 0}};
  if (name == "sum") return {{Function::kSum, 0}};
  double percentile = 0;
  if (absl::ConsumePrefix(&name, "p") && !name.empty() &&
      absl::ascii_isdigit(static_cast<unsigned char>(name.front())) &&
      absl::SimpleAtod(name, &percentile) && percentile <= 100)
    return {{Function::kPercentile, percentile}};
  return std::nullopt;
}

bool IsNumber(HistoryType type) {
  return type == HistoryType::kInteger || type == HistoryType::kNumber || type == HistoryType::kMap;
}

absl::StatusOr<HistoryAggregate> ReadAggregate(HistoryKind kind, absl::string_view text,
                                               size_t at) {
  HistoryAggregate aggregate;
  aggregate.text = std::string(text);
  const size_t open = text.find('(');
  const auto function = ReadFunction(text.substr(0, open));
  if (!function.has_value() || (open != absl::string_view::npos && !absl::EndsWith(text, ")")))
    return WrongPart("aggregates", at,
                     absl::StrCat("'", Printable(text),
                                  "' is none; they are count, count(FIELD), min(FIELD), max(FIELD),"
                                  " mean(FIELD), sum(FIELD), p50(FIELD), p95(FIELD)"));
  std::tie(aggregate.function, aggregate.percentile) = *function;
  if (open == absl::string_view::npos) {
    if (aggregate.function == Function::kCount) return aggregate;
    return WrongPart("aggregates", at,
                     absl::StrCat("'", text, "' needs a field: ", text, "(minutes)"));
  }
  const absl::string_view name = text.substr(open + 1, text.size() - open - 2);
  ASSIGN_OR_RETURN(aggregate.term, ReadTerm(kind, name, "aggregates", at + open + 1));
  const HistoryType type = aggregate.term.field->type;
  const bool is_extreme =
      aggregate.function == Function::kMin || aggregate.function == Function::kMax;
  if (aggregate.function == Function::kCount || IsNumber(type) ||
      (is_extreme && type == HistoryType::kTime))
    return aggregate;
  return WrongPart("aggregates", at + open + 1,
                   absl::StrCat("'", name, "' is no number; count(", name, ") is possible"));
}

absl::Status ReadGroups(const core::HistoryQuestion& question, HistoryPlan* plan) {
  RETURN_IF_ERROR(CheckCount(question.group_by.size(), kHistoryGroupsMax, "group_by"));
  RETURN_IF_ERROR(CheckCount(question.aggregates.size(), kHistoryAggregatesMax, "aggregates"));
  size_t at = 0;
  for (const std::string& name : question.group_by) {
    ASSIGN_OR_RETURN(plan->groups.emplace_back(), ReadTerm(plan->kind, name, "group_by", at));
    if (plan->groups.back().field->type == HistoryType::kTexts)
      return WrongPart("group_by", at, absl::StrCat("'", name, "' has several values a row"));
    at += name.size() + 1;
  }
  at = 0;
  for (const std::string& text : question.aggregates) {
    ASSIGN_OR_RETURN(plan->aggregates.emplace_back(), ReadAggregate(plan->kind, text, at));
    at += text.size() + 1;
  }
  plan->is_grouped = !plan->groups.empty() || !plan->aggregates.empty();
  if (plan->is_grouped && plan->aggregates.empty()) plan->aggregates.emplace_back().text = "count";
  if (plan->is_grouped && !question.columns.empty())
    return absl::InvalidArgumentError(
        "columns and group_by together: of groups only group_by and aggregates are shown");
  return absl::OkStatus();
}

absl::StatusOr<size_t> GroupColumn(const HistoryPlan& plan, absl::string_view name, size_t at) {
  std::vector<std::string> names;
  for (const HistoryTerm& term : plan.groups)
    names.push_back(ToString(term));
  for (const HistoryAggregate& aggregate : plan.aggregates)
    names.push_back(aggregate.text);
  const auto it = std::find(names.begin(), names.end(), name);
  if (it != names.end()) return static_cast<size_t>(it - names.begin());
  return WrongPart("order_by", at,
                   absl::StrCat("'", Printable(name), "' is no column of the groups; they are ",
                                absl::StrJoin(names, ", ")));
}

absl::Status ReadOrders(const core::HistoryQuestion& question, HistoryPlan* plan) {
  if (absl::StripAsciiWhitespace(question.order_by).empty()) return absl::OkStatus();
  size_t at = 0;
  for (const absl::string_view part : absl::StrSplit(question.order_by, ',')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(part, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    const size_t word_at = at + (words.empty() ? 0 : part.find(words.front()));
    at += part.size() + 1;
    if (words.empty() || words.size() > 2 ||
        (words.size() == 2 && words[1] != "desc" && words[1] != "asc"))
      return WrongPart("order_by", word_at, "write FIELD or FIELD desc, joined by commas");
    HistoryPlan::Order order;
    order.is_descending = words.size() == 2 && words[1] == "desc";
    if (plan->is_grouped) {
      ASSIGN_OR_RETURN(order.column, GroupColumn(*plan, words[0], word_at));
    } else {
      ASSIGN_OR_RETURN(order.term, ReadTerm(plan->kind, words[0], "order_by", word_at));
      if (order.term.field->type == HistoryType::kTexts)
        return WrongPart("order_by", word_at,
                         absl::StrCat("'", words[0], "' has several values a row"));
    }
    plan->orders.push_back(std::move(order));
  }
  return CheckCount(plan->orders.size(), kHistoryOrdersMax, "order_by");
}

bool IsPrivate(HistoryKind kind, const FilterNode& filter) {
  if (filter.kind == FilterNode::Kind::kRestriction)
    return FindHistoryField(kind, filter.restriction.field)->is_private;
  return std::any_of(filter.parts.begin(), filter.parts.end(),
                     [kind](const FilterNode& part) { return IsPrivate(kind, part); });
}

bool IsPrivate(const HistoryPlan& plan) {
  const auto is_private = [](const HistoryTerm& term) {
    return term.field != nullptr && term.field->is_private;
  };
  return IsPrivate(plan.kind, plan.filter) ||
         std::any_of(plan.columns.begin(), plan.columns.end(), is_private) ||
         std::any_of(plan.groups.begin(), plan.groups.end(), is_private) ||
         std::any_of(plan.aggregates.begin(), plan.aggregates.end(),
                     [&](const HistoryAggregate& one) { return is_private(one.term); }) ||
         std::any_of(plan.orders.begin(), plan.orders.end(),
                     [&](const HistoryPlan::Order& order) { return is_private(order.term); });
}

std::string HashOf(const core::HistoryQuestion& question) {
  const std::string text = absl::StrJoin(
      {std::string(assay::ToString(question.kind)), question.filter, question.order_by,
       absl::StrJoin(question.group_by, ","), absl::StrJoin(question.aggregates, ",")},
      "\n");
  return Sha256Hex(text).substr(0, 16);
}

}  // namespace

std::string ToString(const HistoryTerm& term) {
  return absl::StrCat(term.field->name, term.key.empty() ? "" : ".", term.key);
}

absl::StatusOr<HistoryPlan> MakeHistoryPlan(const core::HistoryQuestion& question) {
  HistoryPlan plan;
  plan.kind = question.kind;
  ASSIGN_OR_RETURN(plan.filter,
                   ParseFilter(question.filter, HistorySchema(question.kind, CanonicalRoundName),
                               absl::FromUnixMicros(question.viewer.now_us)));
  RETURN_IF_ERROR(ReadGroups(question, &plan));
  if (!plan.is_grouped) RETURN_IF_ERROR(ReadColumns(question, &plan));
  RETURN_IF_ERROR(ReadOrders(question, &plan));
  if (question.page_size < 0)
    return absl::InvalidArgumentError(absl::StrCat("page_size is ", question.page_size,
                                                   "; it is 1 to ", core::kHistoryPageSizeMax,
                                                   ", or 0 for ", core::kHistoryPageSizeDefault));
  if (question.page_size > 0)
    plan.page_size = std::min(question.page_size, core::kHistoryPageSizeMax);
  plan.is_private = IsPrivate(plan);
  plan.token_hash = HashOf(question);
  return plan;
}

}  // namespace assay::store
