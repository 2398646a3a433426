#include "common/rules/condition.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace assay::rules {
namespace {

using Kind = Condition::Kind;

Truth FromBool(bool value) {
  return value ? Truth::kTrue : Truth::kFalse;
}

Truth FromOptional(std::optional<bool> value) {
  return value ? FromBool(*value) : Truth::kError;
}

// `a <op> b`, where `op` is named by the condition that uses it.
Truth CompareAs(Kind kind, const JsonValue& a, const JsonValue& b) {
  const Ordering ordering = PythonCompare(a, b);
  if (ordering == Ordering::kTypeError) return Truth::kError;
  const bool less = ordering == Ordering::kLess;
  const bool equal = ordering == Ordering::kEqual;
  const bool greater = ordering == Ordering::kGreater;
  switch (kind) {
    case Kind::kLess:
    case Kind::kEachLess:
      return FromBool(less);
    case Kind::kAtMost:
    case Kind::kEachAtMost:
      return FromBool(less || equal);
    case Kind::kAtLeast:
      return FromBool(greater || equal);
    default:
      return FromBool(greater);
  }
}

Truth CompareEach(Kind kind, const JsonValue& value, const JsonValue& operand) {
  const JsonList* list = value.AsList();
  if (list == nullptr) return CompareAs(kind, value, operand);
  for (const JsonValue& element : *list) {
    const Truth truth = CompareAs(kind, element, operand);
    if (truth != Truth::kTrue) return truth;
  }
  return Truth::kTrue;
}

bool IsOneOf(const JsonValue& value, const std::vector<JsonValue>& operands) {
  return std::any_of(operands.begin(), operands.end(),
                     [&](const JsonValue& operand) { return PythonEquals(value, operand); });
}

// math.isclose with its default relative tolerance, against the larger magnitude.
Truth IsClose(const JsonValue& value, const JsonValue& operand) {
  const std::optional<double> a = value.ToDouble();
  const double b = *operand.ToDouble();
  const bool is_big = std::holds_alternative<BigInteger>(value.variant());
  if (!a || (is_big && std::isinf(*a))) return Truth::kError;
  if (*a == b) return Truth::kTrue;
  if (std::isinf(*a)) return Truth::kFalse;
  return FromBool(std::fabs(*a - b) <= 1e-9 * std::max(std::fabs(*a), std::fabs(b)));
}

Truth LengthIs(const JsonValue& value, const JsonValue& operand) {
  const std::optional<int64_t> length = PythonLength(value);
  if (!length) return Truth::kError;
  return FromBool(PythonEquals(*length, operand));
}

Truth FlagIs(const State& state, Flag flag, State::FlagState wanted) {
  if (state[flag] == State::FlagState::kUnknown) return Truth::kError;
  return FromBool(state[flag] == wanted);
}

Truth MetadataGreater(const Condition& condition, const JsonValue& metadata) {
  const JsonValue* member = metadata.Find(condition.member);
  if (member == nullptr) return Truth::kError;
  return CompareAs(Kind::kGreater, *member, condition.operands[0]);
}

Truth InitWithin(const Condition& condition, const Record& record, const State& state) {
  return CompareAs(Kind::kLess, record.time_ms - state.first_init_start_ms, condition.operands[0]);
}

std::string Values(const std::vector<JsonValue>& values) {
  return absl::StrJoin(values, ", ",
                       [](std::string* out, const JsonValue& value) { AppendJson(value, out); });
}

}  // namespace

Truth EvaluateValue(const Condition& condition, const JsonValue& value) {
  const auto& operands = condition.operands;
  switch (condition.kind) {
    case Kind::kNotEqual:
      return FromBool(!PythonEquals(value, operands[0]));
    case Kind::kOneOf:
      return FromBool(IsOneOf(value, operands));
    case Kind::kOneOfSet:
      if (value.AsList() != nullptr || value.AsObject() != nullptr) return Truth::kError;
      return FromBool(IsOneOf(value, operands));
    case Kind::kGreater:
    case Kind::kAtLeast:
    case Kind::kLess:
    case Kind::kAtMost:
      return CompareAs(condition.kind, value, operands[0]);
    case Kind::kEachGreater:
    case Kind::kEachAtMost:
    case Kind::kEachLess:
      return CompareEach(condition.kind, value, operands[0]);
    case Kind::kClose:
      return IsClose(value, operands[0]);
    case Kind::kLength:
      return LengthIs(value, operands[0]);
    case Kind::kHasLength:
      return PythonLength(value) ? Truth::kTrue : Truth::kError;
    case Kind::kTrue:
      return FromBool(PythonTruth(value));
    case Kind::kMetadataHas:
    case Kind::kMetadataGreater:
    case Kind::kFlagSet:
    case Kind::kFlagClear:
    case Kind::kInitWithin:
      break;  // not about the value
  }
  return Truth::kTrue;
}

Truth Evaluate(const Condition& condition, const Record& record, const State& state) {
  switch (condition.kind) {
    case Kind::kMetadataHas:
      return FromOptional(PythonContains(record.metadata, condition.member));
    case Kind::kMetadataGreater:
      return MetadataGreater(condition, record.metadata);
    case Kind::kFlagSet:
      return FlagIs(state, condition.flag, State::FlagState::kSet);
    case Kind::kFlagClear:
      return FlagIs(state, condition.flag, State::FlagState::kClear);
    case Kind::kInitWithin:
      return InitWithin(condition, record, state);
    default:
      return EvaluateValue(condition, record.value);
  }
}

Truth EvaluateAll(const std::vector<Condition>& conditions, const Record& record,
                  const State& state) {
  for (const Condition& condition : conditions) {
    const Truth truth = Evaluate(condition, record, state);
    if (truth != Truth::kTrue) return truth;
  }
  return Truth::kTrue;
}

absl::string_view FlagInWords(Flag flag) {
  switch (flag) {
    case Flag::kInitStarted:
      return "init_start";
    case Flag::kInitStopped:
      return "init_stop";
    case Flag::kRunStarted:
      return "run_start";
    case Flag::kRunStopped:
      return "run_stop";
    case Flag::kStagingStarted:
      return "staging_start";
  }
  return "";
}

std::string Describe(const Condition& condition) {
  const std::string values = Values(condition.operands);
  switch (condition.kind) {
    case Kind::kNotEqual:
      return absl::StrCat("anything but ", values);
    case Kind::kOneOf:
    case Kind::kOneOfSet:
      return condition.operands.size() == 1 ? values : absl::StrCat("one of ", values);
    case Kind::kGreater:
      return absl::StrCat("more than ", values);
    case Kind::kAtLeast:
      return absl::StrCat("at least ", values);
    case Kind::kLess:
      return absl::StrCat("less than ", values);
    case Kind::kAtMost:
      return absl::StrCat("at most ", values);
    case Kind::kEachGreater:
      return absl::StrCat("each more than ", values);
    case Kind::kEachAtMost:
      return absl::StrCat("each at most ", values);
    case Kind::kEachLess:
      return absl::StrCat("each less than ", values);
    case Kind::kClose:
      return absl::StrCat(values, " within 1e-9 of it");
    case Kind::kLength:
      return absl::StrCat(values, " elements");
    case Kind::kHasLength:
      return "a list";
    case Kind::kTrue:
      return "true";
    case Kind::kMetadataHas:
      return absl::StrCat("metadata with ", condition.member);
    case Kind::kMetadataGreater:
      return absl::StrCat("metadata ", condition.member, " more than ", values);
    case Kind::kFlagSet:
      return absl::StrCat("a line after ", FlagInWords(condition.flag));
    case Kind::kFlagClear:
      return absl::StrCat("a line before ", FlagInWords(condition.flag));
    case Kind::kInitWithin:
      return absl::StrCat("less than ", values, " ms after the first init_start");
  }
  return "";
}

}  // namespace assay::rules
