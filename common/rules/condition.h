// Conditions on one record: building them, and evaluating them with Python's meaning.

#ifndef COMMON_RULES_CONDITION_H_
#define COMMON_RULES_CONDITION_H_

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/json_value.h"
#include "common/rules/ruleset.h"

namespace assay::rules {

// A record of a key that some rule or fact is about.
struct Record {
  int64_t line = 0;  // of the file, from 1
  double time_ms = 0;
  int key = 0;  // RuleSet::KeyNumber
  JsonValue value;
  JsonValue metadata;            // null where no rule and no fact looks into it
  absl::string_view value_json;  // as logged; lives as long as the call that passes the record
};

// What one config remembers while it walks over the records.
struct State {
  enum class FlagState : int8_t { kUnknown, kClear, kSet };
  std::array<FlagState, kFlagCount> flags{};
  double first_init_start_ms = 9e99;

  FlagState& operator[](Flag flag) { return flags[static_cast<size_t>(flag)]; }
  FlagState operator[](Flag flag) const { return flags[static_cast<size_t>(flag)]; }
};

enum class Truth { kTrue, kFalse, kError };  // kError: Python raises an exception

// Whether `record` meets `condition`.
Truth Evaluate(const Condition& condition, const Record& record, const State& state);

// All of them from left to right, stopping at the first that is not true.
Truth EvaluateAll(const std::vector<Condition>& conditions, const Record& record,
                  const State& state);

// The same for a bare value, as far as its conditions look at nothing else.
Truth EvaluateValue(const Condition& condition, const JsonValue& value);

// The key that sets a flag: "run_start".
absl::string_view FlagInWords(Flag flag);

// Builders, for tables of rules.
inline Condition Compare(Condition::Kind kind, JsonValue operand) {
  return {.kind = kind, .operands = {std::move(operand)}};
}
inline Condition NotEmpty() {
  return Compare(Condition::Kind::kNotEqual, "");
}
inline Condition Equals(JsonValue operand) {
  return Compare(Condition::Kind::kOneOf, std::move(operand));
}
inline Condition OneOf(std::vector<JsonValue> operands) {
  return {.kind = Condition::Kind::kOneOf, .operands = std::move(operands)};
}
inline Condition OneOfSet(std::vector<JsonValue> operands) {
  return {.kind = Condition::Kind::kOneOfSet, .operands = std::move(operands)};
}
inline Condition Greater(JsonValue x) {
  return Compare(Condition::Kind::kGreater, std::move(x));
}
inline Condition AtLeast(JsonValue x) {
  return Compare(Condition::Kind::kAtLeast, std::move(x));
}
inline Condition Less(JsonValue x) {
  return Compare(Condition::Kind::kLess, std::move(x));
}
inline Condition AtMost(JsonValue x) {
  return Compare(Condition::Kind::kAtMost, std::move(x));
}
inline Condition Close(double x) {
  return Compare(Condition::Kind::kClose, x);
}
inline Condition Length(int x) {
  return Compare(Condition::Kind::kLength, x);
}
inline Condition IsTrue() {
  return {.kind = Condition::Kind::kTrue};
}
inline Condition HasLength() {
  return {.kind = Condition::Kind::kHasLength};
}
inline Condition MetadataHas(std::string member) {
  return {.kind = Condition::Kind::kMetadataHas, .member = std::move(member)};
}
inline Condition FlagSet(Flag flag) {
  return {.kind = Condition::Kind::kFlagSet, .flag = flag};
}
inline Condition FlagClear(Flag flag) {
  return {.kind = Condition::Kind::kFlagClear, .flag = flag};
}

}  // namespace assay::rules

#endif  // COMMON_RULES_CONDITION_H_
