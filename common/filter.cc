#include "common/filter.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace assay {
namespace {

// Any text for each *; linear in the product of both lengths, whatever they are.
bool MatchesPattern(absl::string_view text, absl::string_view pattern) {
  const std::vector<absl::string_view> parts = absl::StrSplit(pattern, '*');
  if (parts.size() == 1) return text == pattern;
  if (!absl::StartsWith(text, parts.front())) return false;
  text.remove_prefix(parts.front().size());
  for (size_t i = 1; i + 1 < parts.size(); ++i) {
    const size_t at = text.find(parts[i]);
    if (at == absl::string_view::npos) return false;
    text.remove_prefix(at + parts[i].size());
  }
  return absl::EndsWith(text, parts.back());
}

template <typename T>
bool Compare(const T& found, Comparator comparator, const T& wanted) {
  switch (comparator) {
    case Comparator::kEqual:
      return found == wanted;
    case Comparator::kNotEqual:
      return found != wanted;
    case Comparator::kLess:
      return found < wanted;
    case Comparator::kLessEqual:
      return found <= wanted;
    case Comparator::kGreater:
      return found > wanted;
    case Comparator::kGreaterEqual:
      return found >= wanted;
    case Comparator::kHas:
      return false;
  }
  return false;
}

bool CompareText(const std::string& found, const Restriction& restriction) {
  switch (restriction.comparator) {
    case Comparator::kEqual:
      return MatchesPattern(found, restriction.text);
    case Comparator::kNotEqual:
      return !MatchesPattern(found, restriction.text);
    case Comparator::kHas:
      return MatchesPattern(found, absl::StrCat("*", restriction.text, "*"));
    case Comparator::kLess:
    case Comparator::kLessEqual:
    case Comparator::kGreater:
    case Comparator::kGreaterEqual:
      return false;  // of a map, whose member is a text where a number was compared
  }
  return false;
}

bool MatchesRestriction(const FilterValue& found, const Restriction& restriction) {
  // Of a map, whether it has the key.
  if (!restriction.key.empty() && restriction.text == "*" &&
      restriction.comparator == Comparator::kEqual)
    return !std::holds_alternative<std::monostate>(found);
  if (const auto* const text = std::get_if<std::string>(&found))
    return CompareText(*text, restriction);
  if (const auto* const texts = std::get_if<std::vector<std::string>>(&found)) {
    const bool is_there = std::any_of(texts->begin(), texts->end(), [&](const std::string& text) {
      return MatchesPattern(text, restriction.text);
    });
    return is_there == (restriction.comparator != Comparator::kNotEqual);
  }
  if (found.index() != restriction.value.index()) return false;
  if (const auto* const number = std::get_if<double>(&found))
    return Compare(*number, restriction.comparator, std::get<double>(restriction.value));
  if (const auto* const time = std::get_if<absl::Time>(&found))
    return Compare(*time, restriction.comparator, std::get<absl::Time>(restriction.value));
  if (const auto* const truth = std::get_if<bool>(&found))
    return Compare(*truth, restriction.comparator, std::get<bool>(restriction.value));
  return false;
}

bool IsOfWord(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("_-.*/+", c);
}

// As a value of the language: it is read as what the restriction has.
std::string Quoted(const Restriction& restriction) {
  const bool is_plain =
      !restriction.text.empty() && restriction.text != "AND" && restriction.text != "OR" &&
      restriction.text != "NOT" && restriction.text != "ago" &&
      std::all_of(restriction.text.begin(), restriction.text.end(), IsOfWord) &&
      (restriction.text.front() != '-' || std::holds_alternative<double>(restriction.value)) &&
      // Of a map, where quotes tell a text from a number.
      (restriction.key.empty() || std::holds_alternative<double>(restriction.value) ||
       !absl::ascii_isdigit(static_cast<unsigned char>(restriction.text.front())));
  if (is_plain) return restriction.text;
  std::string quoted = "\"";
  for (const char c : restriction.text) {
    if (c == '"' || c == '\\') quoted.push_back('\\');
    quoted.push_back(c);
  }
  return quoted + "\"";
}

}  // namespace

absl::string_view ToString(Comparator comparator) {
  switch (comparator) {
    case Comparator::kEqual:
      return "=";
    case Comparator::kNotEqual:
      return "!=";
    case Comparator::kLess:
      return "<";
    case Comparator::kLessEqual:
      return "<=";
    case Comparator::kGreater:
      return ">";
    case Comparator::kGreaterEqual:
      return ">=";
    case Comparator::kHas:
      return ":";
  }
  return "";
}

std::string FilterText(const FilterNode& node) {
  std::vector<std::string> parts;
  for (const FilterNode& part : node.parts)
    parts.push_back(FilterText(part));
  switch (node.kind) {
    case FilterNode::Kind::kAll:
      return parts.empty() ? "" : absl::StrCat("(", absl::StrJoin(parts, " AND "), ")");
    case FilterNode::Kind::kAny:
      return absl::StrCat("(", absl::StrJoin(parts, " OR "), ")");
    case FilterNode::Kind::kNot:
      return node.parts.front().kind == FilterNode::Kind::kNot
                 ? absl::StrCat("NOT (", parts.front(), ")")
                 : absl::StrCat("NOT ", parts.front());
    case FilterNode::Kind::kRestriction:
      break;
  }
  const Restriction& restriction = node.restriction;
  return absl::StrCat(restriction.field, restriction.key.empty() ? "" : ".", restriction.key,
                      ToString(restriction.comparator), Quoted(restriction));
}

bool Matches(
    const FilterNode& node,
    absl::FunctionRef<FilterValue(const std::string& field, const std::string& key)> value_of) {
  const auto matches = [&](const FilterNode& part) { return Matches(part, value_of); };
  switch (node.kind) {
    case FilterNode::Kind::kAll:
      return std::all_of(node.parts.begin(), node.parts.end(), matches);
    case FilterNode::Kind::kAny:
      return std::any_of(node.parts.begin(), node.parts.end(), matches);
    case FilterNode::Kind::kNot:
      return !matches(node.parts.front());
    case FilterNode::Kind::kRestriction:
      break;
  }
  return MatchesRestriction(value_of(node.restriction.field, node.restriction.key),
                            node.restriction);
}

}  // namespace assay
