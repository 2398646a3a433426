#include "cli/terminal/template.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace assay::cli {

using client::Json;

const Json* Member(const Json& object, const std::string& field) {
  const auto found = object.find(field);
  if (found != object.end()) return found->is_null() ? nullptr : &*found;
  const size_t dot = field.find('.');
  if (dot == std::string::npos) return nullptr;
  const auto outer = object.find(field.substr(0, dot));
  return outer == object.end() || !outer->is_object() ? nullptr
                                                      : Member(*outer, field.substr(dot + 1));
}

absl::StatusOr<Template> Template::Parse(absl::string_view text) {
  const auto wrong = [&](size_t at, absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("-o tpl: ", what, " at character ", at + 1, " of '", text,
                     "'; write fields as {id}, and {{ or }} for a brace"));
  };
  Template result;
  std::string literal;
  for (size_t i = 0; i < text.size(); ++i) {
    const absl::string_view pair = text.substr(i, 2);
    if (pair == "{{" || pair == "}}") {
      literal.push_back(text[i++]);
    } else if (pair == "\\n" || pair == "\\t") {
      literal.push_back(pair == "\\n" ? '\n' : '\t');
      ++i;
    } else if (text[i] == '}') {
      return wrong(i, "a } without its {");
    } else if (text[i] != '{') {
      literal.push_back(text[i]);
    } else {
      const size_t end = text.find('}', i);
      if (end == absl::string_view::npos) return wrong(i, "a { without its }");
      if (end == i + 1) return wrong(i, "{} without a field");
      result.pieces_.push_back({false, std::exchange(literal, "")});
      result.pieces_.push_back({true, std::string(text.substr(i + 1, end - i - 1))});
      i = end;
    }
  }
  result.pieces_.push_back({false, literal});
  return result;
}

std::vector<std::string> Template::Fields() const {
  std::vector<std::string> fields;
  for (const Piece& piece : pieces_)
    if (piece.is_field) fields.push_back(piece.text);
  return fields;
}

std::string Template::Fill(const Json& object) const {
  std::string text;
  for (const Piece& piece : pieces_) {
    const Json* const member = piece.is_field ? Member(object, piece.text) : nullptr;
    if (!piece.is_field) absl::StrAppend(&text, piece.text);
    if (member != nullptr) absl::StrAppend(&text, client::RawText(*member));
  }
  return text;
}

}  // namespace assay::cli
