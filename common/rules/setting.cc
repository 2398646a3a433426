#include "common/rules/setting.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/log.h"

namespace assay::rules {
namespace {

using Kind = Setting::Kind;

bool IsWithin(const Bounds& bounds, double number) {
  return !(bounds.min && number < *bounds.min) && !(bounds.above && number <= *bounds.above) &&
         !(bounds.max && number > *bounds.max) && !(bounds.below && number >= *bounds.below);
}

std::string Text(const Bounds& bounds) {
  std::vector<std::string> parts;
  if (bounds.min) parts.push_back(absl::StrCat("from ", *bounds.min));
  if (bounds.above) parts.push_back(absl::StrCat("above ", *bounds.above));
  if (bounds.max) parts.push_back(absl::StrCat("to ", *bounds.max));
  if (bounds.below) parts.push_back(absl::StrCat("below ", *bounds.below));
  return parts.empty() ? "" : absl::StrCat(" ", absl::StrJoin(parts, " "));
}

bool IsFinite(const JsonValue& value) {
  const std::optional<double> number = value.ToDouble();
  return number.has_value() && std::isfinite(*number);
}

Kind KindOf(absl::string_view file, const std::string& key, const JsonValue& name) {
  constexpr std::pair<absl::string_view, Kind> kKinds[] = {{"integer", Kind::kInteger},
                                                           {"number", Kind::kNumber},
                                                           {"text", Kind::kText},
                                                           {"numbers", Kind::kNumbers}};
  for (const auto& [known, kind] : kKinds)
    if (name.AsString() != nullptr && *name.AsString() == known) return kind;
  LOG(FATAL) << "file=" << file << " hyperparameter=" << key << " kind=" << DumpJson(name);
  return Kind::kNumber;
}

}  // namespace

bool Setting::IsOfKind(const JsonValue& value) const {
  switch (kind) {
    case Kind::kInteger:
      return value.AsInt64().has_value();
    case Kind::kNumber:
      return IsFinite(value) && !value.AsBool().has_value();
    case Kind::kText:
      return value.AsString() != nullptr;
    case Kind::kNumbers:
      if (value.AsList() == nullptr) return IsFinite(value);
      return std::all_of(value.AsList()->begin(), value.AsList()->end(), IsFinite);
  }
  return false;
}

bool Setting::Takes(const JsonValue& value) const {
  if (kind == Kind::kText) {
    const std::string& text = *value.AsString();
    return choices.empty() ||
           std::any_of(choices.begin(), choices.end(), [&](const std::string& choice) {
             return ignores_case ? absl::EqualsIgnoreCase(choice, text) : choice == text;
           });
  }
  if (kind == Kind::kInteger && *value.AsInt64() % multiple_of != 0) return false;
  const std::vector<double> numbers = NumbersOf(value);
  const auto count = static_cast<int64_t>(numbers.size());
  if (!counts.empty() && std::find(counts.begin(), counts.end(), count) == counts.end())
    return false;
  return std::all_of(numbers.begin(), numbers.end(),
                     [this](double number) { return IsWithin(bounds, number); });
}

std::string Setting::Expected() const {
  switch (kind) {
    case Kind::kInteger:
      return absl::StrCat("a whole number", Text(bounds),
                          multiple_of > 1 ? absl::StrCat(", a multiple of ", multiple_of) : "");
    case Kind::kNumber:
      return absl::StrCat("a number", Text(bounds));
    case Kind::kText:
      return choices.empty() ? "a text"
                             : absl::StrCat("one of \"", absl::StrJoin(choices, "\", \""), "\"");
    case Kind::kNumbers:
      return absl::StrCat("a list of ", absl::StrJoin(counts, " or "), counts.empty() ? "" : " ",
                          "numbers", Text(bounds));
  }
  return "";
}

Setting ReadSetting(absl::string_view file, const std::string& key, const JsonValue& description) {
  CHECK(description.AsObject() != nullptr) << "file=" << file << " hyperparameter=" << key;
  Setting setting = {.key = key};
  const std::pair<absl::string_view, std::optional<double>*> bounds[] = {
      {"min", &setting.bounds.min},
      {"above", &setting.bounds.above},
      {"max", &setting.bounds.max},
      {"below", &setting.bounds.below}};
  for (const auto& [name, value] : *description.AsObject()) {
    const auto bound = std::find_if(std::begin(bounds), std::end(bounds),
                                    [&name = name](const auto& one) { return one.first == name; });
    if (bound != std::end(bounds)) {
      *bound->second = value.ToDouble();
    } else if (name == "kind") {
      setting.kind = KindOf(file, key, value);
    } else if (name == "multiple_of") {
      setting.multiple_of = value.AsInt64().value();
    } else if (name == "closed") {
      setting.closed = value.AsInt64();
    } else if (name == "ignores_case") {
      setting.ignores_case = value.AsBool().value();
    } else if (name == "choices") {
      for (const JsonValue& choice : *value.AsList())
        setting.choices.push_back(*choice.AsString());
    } else if (name == "counts") {
      for (const JsonValue& count : *value.AsList())
        setting.counts.push_back(count.AsInt64().value());
    } else {
      LOG(FATAL) << "file=" << file << " hyperparameter=" << key << " unknown=" << name;
    }
  }
  return setting;
}

std::vector<double> NumbersOf(const JsonValue& value) {
  if (value.AsList() == nullptr) return {value.ToDouble().value_or(0)};
  std::vector<double> numbers;
  for (const JsonValue& element : *value.AsList())
    numbers.push_back(element.ToDouble().value_or(0));
  return numbers;
}

}  // namespace assay::rules
