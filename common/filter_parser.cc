#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "common/filter.h"
#include "common/printable.h"
#include "common/status.h"

namespace assay {
namespace {

// Those of two letters first.
constexpr Comparator kComparators[] = {
    Comparator::kLessEqual, Comparator::kGreaterEqual, Comparator::kNotEqual, Comparator::kLess,
    Comparator::kGreater,   Comparator::kEqual,        Comparator::kHas};

struct Token {
  enum class Kind { kWord, kString, kComparator, kOpen, kClose, kMinus, kEnd };
  Kind kind = Kind::kEnd;
  std::string text;  // of a string what it says
  Comparator comparator = Comparator::kEqual;
  size_t at = 0;
};

absl::Status Wrong(size_t at, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("filter, at ", at, ": ", what));
}

bool IsAsciiSpace(char c) {
  return absl::ascii_isspace(static_cast<unsigned char>(c));
}

bool IsAsciiDigit(char c) {
  return absl::ascii_isdigit(static_cast<unsigned char>(c));
}

// What ends a word.
bool IsSpecial(char c) {
  return IsAsciiSpace(c) || absl::StrContains("<>=!:()\"'", c);
}

class Lexer {
 public:
  explicit Lexer(absl::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<Token>> Tokens() {
    std::vector<Token> tokens;
    for (;;) {
      while (at_ < text_.size() && IsAsciiSpace(text_[at_]))
        ++at_;
      ASSIGN_OR_RETURN(tokens.emplace_back(), Next());
      if (tokens.back().kind == Token::Kind::kEnd) return tokens;
    }
  }

 private:
  absl::StatusOr<Token> Next() {
    Token token{.at = at_};
    if (at_ == text_.size()) return token;
    const char c = text_[at_];
    if (c == '"' || c == '\'') return String(c);
    for (const Comparator comparator : kComparators) {
      if (!absl::StartsWith(text_.substr(at_), ToString(comparator))) continue;
      token.kind = Token::Kind::kComparator;
      token.text = std::string(ToString(comparator));
      token.comparator = comparator;
      at_ += token.text.size();
      return token;
    }
    if (c == '!') return Wrong(at_, "'!' alone; write != or NOT");
    if (c == '(' || c == ')') {
      ++at_;
      token.kind = c == '(' ? Token::Kind::kOpen : Token::Kind::kClose;
      token.text = std::string(1, c);
      return token;
    }
    // Of a restriction; of a number it belongs to the word.
    if (c == '-' && at_ + 1 < text_.size() && !IsAsciiDigit(text_[at_ + 1]) &&
        text_[at_ + 1] != '.') {
      ++at_;
      token.kind = Token::Kind::kMinus;
      token.text = "-";
      return token;
    }
    while (at_ < text_.size() && (!IsSpecial(text_[at_]) || IsWithinTime(token.text)))
      token.text.push_back(text_[at_++]);
    token.kind = Token::Kind::kWord;
    return token;
  }

  // A colon between two digits of what begins with one: of a time, and no comparator.
  bool IsWithinTime(absl::string_view word) const {
    return text_[at_] == ':' && !word.empty() && IsAsciiDigit(word.front()) &&
           IsAsciiDigit(word.back()) && at_ + 1 < text_.size() && IsAsciiDigit(text_[at_ + 1]);
  }

  absl::StatusOr<Token> String(char quote) {
    Token token{.kind = Token::Kind::kString, .at = at_};
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == quote) {
        ++at_;
        return token;
      }
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      token.text.push_back(text_[at_]);
    }
    return Wrong(token.at, absl::StrCat("the closing ", std::string(1, quote), " is missing"));
  }

  const absl::string_view text_;
  size_t at_ = 0;
};

std::optional<absl::Time> ParseTime(const std::string& text) {
  absl::Time time;
  std::string error;
  for (const char* format : {"%Y-%m-%d", "%Y-%m-%dT%H:%M:%E*S", "%Y-%m-%dT%H:%M:%E*S%Ez"})
    if (absl::ParseTime(format, text, absl::UTCTimeZone(), &time, &error)) return time;
  return std::nullopt;
}

// "90d", "12h": absl's units and days.
std::optional<absl::Duration> ParseSpan(const std::string& text) {
  absl::Duration span;
  double days = 0;
  if (absl::EndsWith(text, "d") && absl::SimpleAtod(text.substr(0, text.size() - 1), &days))
    return absl::Hours(24) * days;
  if (absl::ParseDuration(text, &span)) return span;
  return std::nullopt;
}

class Parser {
 public:
  Parser(std::vector<Token> tokens, const FilterSchema& schema, absl::Time now)
      : tokens_(std::move(tokens)), schema_(schema), now_(now) {}

  absl::StatusOr<FilterNode> Parse() {
    if (Peek().kind == Token::Kind::kEnd) return FilterNode{};
    ASSIGN_OR_RETURN(FilterNode node, Expression());
    if (Peek().kind != Token::Kind::kEnd)
      return Wrong(Peek().at, absl::StrCat("unexpected '", Printable(Peek().text), "'"));
    return node;
  }

 private:
  using Part = absl::StatusOr<FilterNode> (Parser::*)();

  const Token& Peek() const { return tokens_[next_]; }
  Token Take() {
    Token token = tokens_[next_];
    if (token.kind != Token::Kind::kEnd) ++next_;
    return token;
  }
  bool IsWord(absl::string_view word) const {
    return Peek().kind == Token::Kind::kWord && Peek().text == word;
  }
  bool TakeWord(absl::string_view word) {
    const bool is_there = IsWord(word);
    if (is_there) ++next_;
    return is_there;
  }
  // Whether another factor follows without a word between.
  bool IsFactor() const {
    switch (Peek().kind) {
      case Token::Kind::kWord:
        return !IsWord("AND") && !IsWord("OR");
      case Token::Kind::kString:
      case Token::Kind::kOpen:
      case Token::Kind::kMinus:
        return true;
      default:
        return false;
    }
  }

  static FilterNode Join(FilterNode::Kind kind, std::vector<FilterNode> parts) {
    if (parts.size() == 1) return std::move(parts.front());
    return {.kind = kind, .parts = std::move(parts), .restriction = {}};
  }

  absl::StatusOr<FilterNode> Expression() {
    std::vector<FilterNode> parts;
    do {
      ASSIGN_OR_RETURN(parts.emplace_back(), Sequence());
    } while (TakeWord("AND"));
    return Join(FilterNode::Kind::kAll, std::move(parts));
  }

  absl::StatusOr<FilterNode> Sequence() {
    std::vector<FilterNode> parts;
    do {
      ASSIGN_OR_RETURN(parts.emplace_back(), Factor());
    } while (IsFactor());
    return Join(FilterNode::Kind::kAll, std::move(parts));
  }

  absl::StatusOr<FilterNode> Factor() {
    std::vector<FilterNode> parts;
    do {
      ASSIGN_OR_RETURN(parts.emplace_back(), Term());
    } while (TakeWord("OR"));
    return Join(FilterNode::Kind::kAny, std::move(parts));
  }

  absl::StatusOr<FilterNode> Term() {
    if (++term_count_ > kFilterTermsMax)
      return Wrong(Peek().at, absl::StrCat("more than ", kFilterTermsMax, " terms: ask in parts"));
    const bool is_not = TakeWord("NOT") || Peek().kind == Token::Kind::kMinus;
    if (Peek().kind == Token::Kind::kMinus) ++next_;
    ASSIGN_OR_RETURN(FilterNode node, Simple());
    if (!is_not) return node;
    return FilterNode{
        .kind = FilterNode::Kind::kNot, .parts = {std::move(node)}, .restriction = {}};
  }

  absl::StatusOr<FilterNode> Simple() {
    if (Peek().kind != Token::Kind::kOpen) return TakeRestriction();
    const size_t at = Take().at;
    ASSIGN_OR_RETURN(FilterNode node, Expression());
    if (Take().kind != Token::Kind::kClose)
      return Wrong(at, "the ')' of this '(' is missing, or a word before it");
    return node;
  }

  absl::StatusOr<FilterNode> TakeRestriction() {
    const Token name = Take();
    if (name.kind == Token::Kind::kEnd) return Wrong(name.at, "a field is missing, such as round=");
    if (name.kind != Token::Kind::kWord)
      return Wrong(name.at, absl::StrCat("'", Printable(name.text),
                                         "' is where a field belongs: ", FieldsText()));
    FilterNode node{.kind = FilterNode::Kind::kRestriction, .parts = {}, .restriction = {}};
    ASSIGN_OR_RETURN(const FilterField field, FindField(name, &node.restriction));
    const Token comparator = Take();
    if (comparator.kind != Token::Kind::kComparator)
      return Wrong(comparator.at, absl::StrCat("one of = != < <= > >= : belongs behind '",
                                               Printable(name.text), "'"));
    node.restriction.comparator = comparator.comparator;
    RETURN_IF_ERROR(TakeValue(field, &node.restriction));
    RETURN_IF_ERROR(CheckComparator(field, comparator, node.restriction));
    return node;
  }

  std::string FieldsText() const {
    std::vector<std::string> names;
    for (const auto& [name, field] : schema_.fields)
      names.push_back(field.type == FilterType::kMap ? absl::StrCat(name, ".KEY") : name);
    return absl::StrCat("fields: ", absl::StrJoin(names, ", "));
  }

  absl::StatusOr<FilterField> FindField(const Token& name, Restriction* restriction) const {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(name.text, absl::MaxSplits('.', 1));
    const auto alias = schema_.aliases.find(parts.first);
    restriction->field = alias == schema_.aliases.end() ? parts.first : alias->second;
    restriction->key = parts.second;
    const auto it = schema_.fields.find(restriction->field);
    if (it == schema_.fields.end())
      return Wrong(name.at, absl::StrCat("there is no field '", Printable(parts.first), "'; ",
                                         FieldsText()));
    if ((it->second.type == FilterType::kMap) != !restriction->key.empty())
      return Wrong(name.at,
                   restriction->key.empty()
                       ? absl::StrCat("'", parts.first, "' needs a key: ", parts.first, ".KEY")
                       : absl::StrCat("'", parts.first, "' has no keys"));
    return it->second;
  }

  absl::Status TakeValue(const FilterField& field, Restriction* restriction) {
    const Token value = Take();
    if (value.kind != Token::Kind::kWord && value.kind != Token::Kind::kString)
      return Wrong(value.at, absl::StrCat("a value is missing behind '", restriction->field, "'"));
    if (value.kind == Token::Kind::kWord && value.text == "ago" &&
        Peek().kind == Token::Kind::kOpen)
      return TakeAgo(field, restriction);
    restriction->text = field.canonical == nullptr ? value.text : field.canonical(value.text);
    return Convert(field, value, restriction);
  }

  absl::Status TakeAgo(const FilterField& field, Restriction* restriction) {
    const size_t at = Take().at;
    const Token span = Take();
    const std::optional<absl::Duration> time = ParseSpan(span.text);
    if (Take().kind != Token::Kind::kClose || !time.has_value())
      return Wrong(at, "write ago(\"90d\"), ago(\"12h\")");
    if (field.type != FilterType::kTime)
      return Wrong(at, absl::StrCat("'", restriction->field, "' is no time"));
    restriction->value = now_ - *time;
    restriction->text = absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", now_ - *time, absl::UTCTimeZone());
    return absl::OkStatus();
  }

  static absl::Status Convert(const FilterField& field, const Token& value,
                              Restriction* restriction) {
    double number = 0;
    const bool is_number = absl::SimpleAtod(restriction->text, &number);
    switch (field.type) {
      case FilterType::kText:
        restriction->value = restriction->text;
        if (field.choices.empty() || absl::StrContains(restriction->text, '*') ||
            absl::c_linear_search(field.choices, restriction->text))
          return absl::OkStatus();
        return WrongValue(value, *restriction,
                          absl::StrCat("is one of ", absl::StrJoin(field.choices, ", ")));
      case FilterType::kMap:
        restriction->value = restriction->text;
        if (is_number && value.kind == Token::Kind::kWord) restriction->value = number;
        return absl::OkStatus();
      case FilterType::kNumber:
        if (!is_number) return WrongValue(value, *restriction, "is a number");
        restriction->value = number;
        return absl::OkStatus();
      case FilterType::kTime: {
        const std::optional<absl::Time> time = ParseTime(restriction->text);
        if (!time.has_value())
          return WrongValue(value, *restriction,
                            "is a time: 2026-11-23, 2026-11-23T10:00:00Z or ago(\"90d\")");
        restriction->value = *time;
        return absl::OkStatus();
      }
      case FilterType::kBool:
        if (restriction->text != "true" && restriction->text != "false")
          return WrongValue(value, *restriction, "is true or false");
        restriction->value = restriction->text == "true";
        return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  static absl::Status WrongValue(const Token& value, const Restriction& restriction,
                                 absl::string_view what) {
    return Wrong(value.at, absl::StrCat("'", restriction.field, "' ", what, ", and not '",
                                        Printable(value.text), "'"));
  }

  static absl::Status CheckComparator(const FilterField& field, const Token& comparator,
                                      const Restriction& restriction) {
    const bool is_equality = restriction.comparator == Comparator::kEqual ||
                             restriction.comparator == Comparator::kNotEqual;
    if (is_equality) return absl::OkStatus();
    const bool is_has = restriction.comparator == Comparator::kHas;
    if (field.type == FilterType::kBool || (is_has && field.type != FilterType::kText))
      return Wrong(comparator.at, absl::StrCat("'", restriction.field, "' cannot be compared by ",
                                               comparator.text));
    if (!is_has &&
        (field.type == FilterType::kText || std::holds_alternative<std::string>(restriction.value)))
      return Wrong(comparator.at,
                   absl::StrCat("'", restriction.field, "' is text: use =, != or :"));
    return absl::OkStatus();
  }

  const std::vector<Token> tokens_;
  const FilterSchema& schema_;
  const absl::Time now_;
  size_t next_ = 0;
  int term_count_ = 0;
};

}  // namespace

absl::StatusOr<FilterNode> ParseFilter(absl::string_view text, const FilterSchema& schema,
                                       absl::Time now) {
  if (text.size() > kFilterBytesMax)
    return Wrong(kFilterBytesMax, absl::StrCat("it has ", text.size(), " bytes, at most ",
                                               kFilterBytesMax, " are read"));
  ASSIGN_OR_RETURN(std::vector<Token> tokens, Lexer(text).Tokens());
  return Parser(std::move(tokens), schema, now).Parse();
}

}  // namespace assay
