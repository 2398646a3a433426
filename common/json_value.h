// A JSON value with the meaning that the reference tools, which are Python, give it: integers of
// any size are exact and compare exactly with floats, true equals 1, objects compare without order.
//
// Text is held as UTF-8; a lone surrogate (legal in an escape) is kept as its three-byte form.
// Immutable in use, copyable, and as thread-safe as a std::string.

#ifndef COMMON_JSON_VALUE_H_
#define COMMON_JSON_VALUE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"

namespace assay {

class JsonValue;
using JsonList = std::vector<JsonValue>;
using JsonObject = std::vector<std::pair<std::string, JsonValue>>;  // in order; names are unique

// An integer outside the range of int64_t, as "-" and digits without leading zeros.
struct BigInteger {
  std::string digits;
  bool operator==(const BigInteger&) const = default;
};

// Outcome of Python's `a <op> b` for two operands that may not be comparable.
enum class Ordering { kLess, kEqual, kGreater, kUnordered, kTypeError };

class JsonValue {
 public:
  using Variant = std::variant<std::monostate, bool, int64_t, BigInteger, double, std::string,
                               JsonList, JsonObject>;

  JsonValue() = default;  // null
  // NOLINTBEGIN(google-explicit-constructor): a table of rules writes values as they are.
  JsonValue(bool value) : value_(value) {}
  JsonValue(int value) : value_(int64_t{value}) {}
  JsonValue(int64_t value) : value_(value) {}
  JsonValue(BigInteger value) : value_(std::move(value)) {}
  JsonValue(double value) : value_(value) {}
  JsonValue(const char* value) : value_(std::string(value)) {}
  JsonValue(std::string value) : value_(std::move(value)) {}
  JsonValue(absl::string_view value) : value_(std::string(value)) {}
  JsonValue(JsonList value) : value_(std::move(value)) {}
  JsonValue(JsonObject value) : value_(std::move(value)) {}
  // NOLINTEND(google-explicit-constructor)

  const Variant& variant() const { return value_; }
  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  const std::string* AsString() const { return std::get_if<std::string>(&value_); }
  const JsonList* AsList() const { return std::get_if<JsonList>(&value_); }
  const JsonObject* AsObject() const { return std::get_if<JsonObject>(&value_); }
  std::optional<bool> AsBool() const;
  // The value of an integer that fits; not of a bool or a float.
  std::optional<int64_t> AsInt64() const;

  // The nearest double of a number or bool, +-infinity where it is too large; nullopt for others.
  std::optional<double> ToDouble() const;
  // The member `name` of an object; null pointer where there is none, or this is no object.
  const JsonValue* Find(absl::string_view name) const;

 private:
  Variant value_;
};

// Python's `a == b`: never fails; NaN differs from itself unless nested in a list or object, where
// Python compares identities first and all NaN literals of a process are one object.
bool PythonEquals(const JsonValue& a, const JsonValue& b);

// `a is b or a == b` of two parsed values: as PythonEquals, but NaN equals NaN at the top as well.
bool PythonSame(const JsonValue& a, const JsonValue& b);

// Python's order of two numbers (int, float, bool; mixed exactly). kTypeError if either is anything
// else; kUnordered if one is NaN.
Ordering PythonCompare(const JsonValue& a, const JsonValue& b);

// Python's bool(value): false for null, false, zero and everything empty; NaN is true.
bool PythonTruth(const JsonValue& value);

// Python's len(value): code points of a string, elements, members; nullopt (TypeError) for others.
std::optional<int64_t> PythonLength(const JsonValue& value);

// Python's `name in value`: member of an object, element of a list, substring of a string; nullopt
// (TypeError) for others.
std::optional<bool> PythonContains(const JsonValue& value, absl::string_view name);

// Python's str(value), as format() puts it into a file name: None, True, 1.0, ['closed'].
std::string PythonStr(const JsonValue& value);

// Python's repr(double), which is also what its JSON writer prints except for nan and inf.
std::string PythonFloatRepr(double value);

// JSON text as Python's json.dumps writes it: ", " and ": " between, ASCII with \u escapes, bare
// NaN and Infinity. Bytes that are not UTF-8 become U+FFFD.
std::string DumpJson(const JsonValue& value);
void AppendJson(const JsonValue& value, std::string* out);
void AppendJsonString(absl::string_view text, std::string* out);

}  // namespace assay

#endif  // COMMON_JSON_VALUE_H_
