#include "worker/trainer/hyperparameters.h"

#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/json_reader.h"
#include "common/status.h"

namespace assay {

absl::Status InvalidField(absl::string_view field, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", problem));
}

namespace {

absl::StatusOr<JsonValue> ParseValue(const std::string& key, const std::string& text) {
  JsonResult parsed = ParseJson(text);
  if (parsed.error != JsonError::kNone) return InvalidField(key, absl::StrCat("not JSON: ", text));
  return std::move(parsed.value);
}

absl::StatusOr<int64_t> ReadInteger(const std::map<std::string, JsonValue>& values,
                                    const std::string& key, int64_t otherwise) {
  const auto found = values.find(key);
  if (found == values.end()) return otherwise;
  const JsonValue* const value = &found->second;
  const std::optional<int64_t> number = value->AsInt64();
  if (!number.has_value())
    return InvalidField(key, absl::StrCat("want an integer, found ", DumpJson(*value)));
  return *number;
}

}  // namespace

absl::StatusOr<Hyperparameters> Hyperparameters::Parse(const v1::RunSpec& run) {
  Hyperparameters result;
  for (const v1::Hyperparameter& parameter : run.hyperparameters()) {
    ASSIGN_OR_RETURN(result.values_[parameter.key()],
                     ParseValue(parameter.key(), parameter.json_value()));
  }
  for (const auto& [name, text] : run.dataset().parameters()) {
    ASSIGN_OR_RETURN(JsonValue value, ParseValue(name, text));
    result.values_.emplace(name, std::move(value));
  }
  for (const auto& [name, text] : run.fixed()) {
    ASSIGN_OR_RETURN(result.fixed_[name], ParseValue(name, text));
  }
  return result;
}

absl::StatusOr<double> Hyperparameters::Number(const std::string& key, double otherwise) const {
  const JsonValue* value = Find(key);
  if (value == nullptr) return otherwise;
  const std::optional<double> number = value->ToDouble();
  if (!number.has_value() || !std::isfinite(*number) || value->AsBool().has_value())
    return InvalidField(key, absl::StrCat("want a number, found ", DumpJson(*value)));
  return *number;
}

absl::StatusOr<int64_t> Hyperparameters::Integer(const std::string& key, int64_t otherwise) const {
  return ReadInteger(values_, key, otherwise);
}

absl::StatusOr<int64_t> Hyperparameters::FixedInteger(const std::string& key,
                                                      int64_t otherwise) const {
  return ReadInteger(fixed_, key, otherwise);
}
absl::StatusOr<std::string> Hyperparameters::Text(const std::string& key,
                                                  const std::string& otherwise) const {
  const JsonValue* value = Find(key);
  if (value == nullptr) return otherwise;
  if (value->AsString() == nullptr)
    return InvalidField(key, absl::StrCat("want a string, found ", DumpJson(*value)));
  return *value->AsString();
}

absl::StatusOr<std::vector<double>> Hyperparameters::Numbers(const std::string& key) const {
  const JsonValue* value = Find(key);
  if (value == nullptr) return std::vector<double>();
  const JsonList single = {*value};
  const JsonList& list = value->AsList() == nullptr ? single : *value->AsList();
  std::vector<double> numbers;
  for (const JsonValue& element : list) {
    const std::optional<double> number = element.ToDouble();
    if (!number.has_value() || !std::isfinite(*number))
      return InvalidField(key, absl::StrCat("want numbers, found ", DumpJson(element)));
    numbers.push_back(*number);
  }
  return numbers;
}

const JsonValue* Hyperparameters::Find(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

}  // namespace assay
