#include "common/json_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace assay {
namespace {

constexpr double kTwoTo63 = 9223372036854775808.0;

// One operand of a numeric comparison; a bool has become an integer.
using Number = std::variant<int64_t, const BigInteger*, double>;

std::optional<Number> AsNumber(const JsonValue& value) {
  const JsonValue::Variant& v = value.variant();
  if (const auto* b = std::get_if<bool>(&v)) return Number(int64_t{*b});
  if (const auto* i = std::get_if<int64_t>(&v)) return Number(*i);
  if (const auto* big = std::get_if<BigInteger>(&v)) return Number(big);
  if (const auto* d = std::get_if<double>(&v)) return Number(*d);
  return std::nullopt;
}

template <typename T>
Ordering OrderOf(const T& a, const T& b) {
  if (a < b) return Ordering::kLess;
  return b < a ? Ordering::kGreater : Ordering::kEqual;
}

Ordering Reverse(Ordering ordering) {
  if (ordering == Ordering::kLess) return Ordering::kGreater;
  return ordering == Ordering::kGreater ? Ordering::kLess : ordering;
}

bool IsNegative(absl::string_view digits) {
  return !digits.empty() && digits[0] == '-';
}

// Compares two integers written in decimal without leading zeros.
Ordering CompareDigits(absl::string_view a, absl::string_view b) {
  if (IsNegative(a) != IsNegative(b)) return IsNegative(a) ? Ordering::kLess : Ordering::kGreater;
  if (IsNegative(a)) return CompareDigits(b.substr(1), a.substr(1));
  if (a.size() != b.size()) return OrderOf(a.size(), b.size());
  return OrderOf(a, b);
}

Ordering CompareIntDouble(int64_t i, double d) {
  if (std::isnan(d)) return Ordering::kUnordered;
  if (d >= kTwoTo63) return Ordering::kLess;
  if (d < -kTwoTo63) return Ordering::kGreater;
  const double whole = std::trunc(d);
  const Ordering ordering = OrderOf(i, static_cast<int64_t>(whole));
  return ordering == Ordering::kEqual ? OrderOf(whole, d) : ordering;
}

Ordering CompareBigDouble(const BigInteger& big, double d) {
  if (std::isnan(d)) return Ordering::kUnordered;
  const bool negative = IsNegative(big.digits);
  if (std::isinf(d)) return d > 0 ? Ordering::kLess : Ordering::kGreater;
  if (std::fabs(d) < kTwoTo63) return negative ? Ordering::kLess : Ordering::kGreater;
  return CompareDigits(big.digits, absl::StrFormat("%.0f", d));  // such a double is an integer
}

Ordering CompareNumbers(const Number& a, const Number& b) {
  const auto* int_a = std::get_if<int64_t>(&a);
  const auto* int_b = std::get_if<int64_t>(&b);
  const auto* double_a = std::get_if<double>(&a);
  const auto* double_b = std::get_if<double>(&b);
  if (int_a && int_b) return OrderOf(*int_a, *int_b);
  if (double_a && double_b) {
    if (std::isnan(*double_a) || std::isnan(*double_b)) return Ordering::kUnordered;
    return OrderOf(*double_a, *double_b);
  }
  if (int_a && double_b) return CompareIntDouble(*int_a, *double_b);
  if (double_a) return Reverse(CompareNumbers(b, a));
  const std::string digits_a =
      int_a ? absl::StrCat(*int_a) : std::get<const BigInteger*>(a)->digits;
  if (double_b) return CompareBigDouble(*std::get<const BigInteger*>(a), *double_b);
  const std::string digits_b =
      int_b ? absl::StrCat(*int_b) : std::get<const BigInteger*>(b)->digits;
  return CompareDigits(digits_a, digits_b);
}

bool SameLists(const JsonList& a, const JsonList& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), PythonSame);
}

// Member by member in the order of their names.
bool SameObjects(const JsonObject& a, const JsonObject& b) {
  if (a.size() != b.size()) return false;
  const auto sorted = [](const JsonObject& object) {
    std::vector<const JsonObject::value_type*> members;
    for (const auto& member : object)
      members.push_back(&member);
    std::sort(members.begin(), members.end(),
              [](const auto* x, const auto* y) { return x->first < y->first; });
    return members;
  };
  const auto members_a = sorted(a);
  const auto members_b = sorted(b);
  return std::equal(members_a.begin(), members_a.end(), members_b.begin(),
                    [](const auto* x, const auto* y) {
                      return x->first == y->first && PythonSame(x->second, y->second);
                    });
}

bool IsNan(const JsonValue& value) {
  const auto* d = std::get_if<double>(&value.variant());
  return d != nullptr && std::isnan(*d);
}

// ------------------------------------------------------------------------------------- text

// Takes one code point from the front of `text`; surrogates pass, other malformed bytes become
// U+FFFD one at a time.
uint32_t TakeCodePoint(absl::string_view* text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>((*text)[i]); };
  const uint8_t first = byte(0);
  const size_t length = first < 0x80   ? 1
                        : first < 0xC2 ? 0
                        : first < 0xE0 ? 2
                        : first < 0xF0 ? 3
                        : first < 0xF5 ? 4
                                       : 0;
  uint32_t code = length <= 1 ? first : first & (0x7Fu >> length);
  bool ok = length != 0 && length <= text->size();
  for (size_t i = 1; ok && i < length; ++i) {
    ok = (byte(i) & 0xC0) == 0x80;
    code = code << 6 | (byte(i) & 0x3F);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  if (!ok || overlong || code > 0x10FFFF) {
    text->remove_prefix(1);
    return 0xFFFD;
  }
  text->remove_prefix(length);
  return code;
}

// The character of a two-character escape, or 0. JSON and Python share most of them.
char ShortEscape(uint32_t code) {
  switch (code) {
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    case '\b':
      return 'b';
    case '\f':
      return 'f';
    default:
      return 0;
  }
}

void AppendPythonRepr(absl::string_view text, std::string* out) {
  const bool has_single = absl::StrContains(text, '\'');
  const char quote = has_single && !absl::StrContains(text, '"') ? '"' : '\'';
  out->push_back(quote);
  while (!text.empty()) {
    const absl::string_view before = text;
    const uint32_t code = TakeCodePoint(&text);
    const char escape = ShortEscape(code);
    if (code == '\\' || code == static_cast<uint32_t>(quote)) {
      absl::StrAppend(out, "\\", std::string(1, static_cast<char>(code)));
    } else if (escape != 0 && code != '\b' && code != '\f') {
      absl::StrAppend(out, "\\", std::string(1, escape));
    } else if (code < 0x20 || (code >= 0x7F && code <= 0xA0) || code == 0xAD) {
      absl::StrAppendFormat(out, "\\x%02x", code);
    } else if (code >= 0xD800 && code < 0xE000) {
      absl::StrAppendFormat(out, "\\u%04x", code);
    } else {
      absl::StrAppend(out, before.substr(0, before.size() - text.size()));
    }
  }
  out->push_back(quote);
}

void AppendPythonValue(const JsonValue& value, std::string* out);

void AppendPythonList(const JsonList& list, std::string* out) {
  out->push_back('[');
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out->append(", ");
    AppendPythonValue(list[i], out);
  }
  out->push_back(']');
}

void AppendPythonObject(const JsonObject& object, std::string* out) {
  out->push_back('{');
  for (size_t i = 0; i < object.size(); ++i) {
    if (i > 0) out->append(", ");
    AppendPythonRepr(object[i].first, out);
    out->append(": ");
    AppendPythonValue(object[i].second, out);
  }
  out->push_back('}');
}

template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <typename... F>
Overloaded(F...) -> Overloaded<F...>;

void AppendPythonValue(const JsonValue& value, std::string* out) {
  std::visit(Overloaded{
                 [&](std::monostate) { out->append("None"); },
                 [&](bool b) { out->append(b ? "True" : "False"); },
                 [&](int64_t i) { absl::StrAppend(out, i); },
                 [&](const BigInteger& big) { out->append(big.digits); },
                 [&](double d) { out->append(PythonFloatRepr(d)); },
                 [&](const std::string& s) { AppendPythonRepr(s, out); },
                 [&](const JsonList& list) { AppendPythonList(list, out); },
                 [&](const JsonObject& object) { AppendPythonObject(object, out); },
             },
             value.variant());
}

std::string JsonFloat(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return PythonFloatRepr(value);
}

void AppendJsonList(const JsonList& list, std::string* out) {
  out->push_back('[');
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out->append(", ");
    AppendJson(list[i], out);
  }
  out->push_back(']');
}

void AppendJsonObject(const JsonObject& object, std::string* out) {
  out->push_back('{');
  for (size_t i = 0; i < object.size(); ++i) {
    if (i > 0) out->append(", ");
    AppendJsonString(object[i].first, out);
    out->append(": ");
    AppendJson(object[i].second, out);
  }
  out->push_back('}');
}

}  // namespace

std::optional<bool> JsonValue::AsBool() const {
  const auto* b = std::get_if<bool>(&value_);
  return b == nullptr ? std::nullopt : std::optional<bool>(*b);
}

std::optional<int64_t> JsonValue::AsInt64() const {
  const auto* i = std::get_if<int64_t>(&value_);
  return i == nullptr ? std::nullopt : std::optional<int64_t>(*i);
}

std::optional<double> JsonValue::ToDouble() const {
  if (const auto* b = std::get_if<bool>(&value_)) return *b ? 1.0 : 0.0;
  if (const auto* i = std::get_if<int64_t>(&value_)) return static_cast<double>(*i);
  if (const auto* d = std::get_if<double>(&value_)) return *d;
  if (const auto* big = std::get_if<BigInteger>(&value_)) {
    double result = 0;
    return absl::SimpleAtod(big->digits, &result) ? std::optional<double>(result) : std::nullopt;
  }
  return std::nullopt;
}

const JsonValue* JsonValue::Find(absl::string_view name) const {
  const JsonObject* object = AsObject();
  if (object == nullptr) return nullptr;
  for (const auto& member : *object) {
    if (member.first == name) return &member.second;
  }
  return nullptr;
}

bool PythonEquals(const JsonValue& a, const JsonValue& b) {
  const std::optional<Number> number_a = AsNumber(a);
  const std::optional<Number> number_b = AsNumber(b);
  if (number_a && number_b) return CompareNumbers(*number_a, *number_b) == Ordering::kEqual;
  if (a.variant().index() != b.variant().index()) return false;
  if (a.AsList() != nullptr) return SameLists(*a.AsList(), *b.AsList());
  if (a.AsObject() != nullptr) return SameObjects(*a.AsObject(), *b.AsObject());
  if (a.AsString() != nullptr) return *a.AsString() == *b.AsString();
  return true;  // both null
}

bool PythonSame(const JsonValue& a, const JsonValue& b) {
  return (IsNan(a) && IsNan(b)) || PythonEquals(a, b);
}

Ordering PythonCompare(const JsonValue& a, const JsonValue& b) {
  const std::optional<Number> number_a = AsNumber(a);
  const std::optional<Number> number_b = AsNumber(b);
  if (!number_a || !number_b) return Ordering::kTypeError;
  return CompareNumbers(*number_a, *number_b);
}

bool PythonTruth(const JsonValue& value) {
  return std::visit(Overloaded{
                        [](std::monostate) { return false; },
                        [](bool b) { return b; },
                        [](int64_t i) { return i != 0; },
                        [](const BigInteger&) { return true; },
                        [](double d) { return d != 0; },  // true for NaN
                        [](const std::string& s) { return !s.empty(); },
                        [](const JsonList& list) { return !list.empty(); },
                        [](const JsonObject& object) { return !object.empty(); },
                    },
                    value.variant());
}

std::optional<int64_t> PythonLength(const JsonValue& value) {
  if (const JsonList* list = value.AsList()) return static_cast<int64_t>(list->size());
  if (const JsonObject* object = value.AsObject()) return static_cast<int64_t>(object->size());
  if (const std::string* text = value.AsString()) {
    return std::count_if(text->begin(), text->end(),
                         [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; });
  }
  return std::nullopt;
}

std::optional<bool> PythonContains(const JsonValue& value, absl::string_view name) {
  if (value.AsObject() != nullptr) return value.Find(name) != nullptr;
  if (const std::string* text = value.AsString()) return absl::StrContains(*text, name);
  const JsonList* list = value.AsList();
  if (list == nullptr) return std::nullopt;
  return std::any_of(list->begin(), list->end(), [&](const JsonValue& element) {
    return element.AsString() != nullptr && *element.AsString() == name;
  });
}

std::string PythonStr(const JsonValue& value) {
  if (value.AsString() != nullptr) return *value.AsString();
  std::string out;
  AppendPythonValue(value, &out);
  return out;
}

// Python's rule for the shortest digits that read back: plain from 1e-4 up to below 1e16, else with
// an exponent of at least two digits.
std::string PythonFloatRepr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const auto scientific =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  const absl::string_view text(buffer, static_cast<size_t>(scientific.ptr - buffer));
  int exponent = 0;
  (void)absl::SimpleAtoi(text.substr(text.find('e') + 1), &exponent);
  if (exponent < -4 || exponent >= 16) return std::string(text);
  const auto fixed =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed);
  std::string result(buffer, fixed.ptr);
  if (!absl::StrContains(result, '.')) result.append(".0");
  return result;
}

void AppendJsonString(absl::string_view text, std::string* out) {
  out->push_back('"');
  while (!text.empty()) {
    const uint32_t code = TakeCodePoint(&text);
    const char escape = ShortEscape(code);
    if (code == '"' || code == '\\') {
      out->push_back('\\');
      out->push_back(static_cast<char>(code));
    } else if (escape != 0) {
      out->push_back('\\');
      out->push_back(escape);
    } else if (code >= 0x20 && code < 0x7F) {
      out->push_back(static_cast<char>(code));
    } else if (code < 0x10000) {
      absl::StrAppendFormat(out, "\\u%04x", code);
    } else {
      const uint32_t offset = code - 0x10000;
      absl::StrAppendFormat(out, "\\u%04x\\u%04x", 0xD800 + (offset >> 10),
                            0xDC00 + (offset & 0x3FF));
    }
  }
  out->push_back('"');
}

void AppendJson(const JsonValue& value, std::string* out) {
  std::visit(Overloaded{
                 [&](std::monostate) { out->append("null"); },
                 [&](bool b) { out->append(b ? "true" : "false"); },
                 [&](int64_t i) { absl::StrAppend(out, i); },
                 [&](const BigInteger& big) { out->append(big.digits); },
                 [&](double d) { out->append(JsonFloat(d)); },
                 [&](const std::string& s) { AppendJsonString(s, out); },
                 [&](const JsonList& list) { AppendJsonList(list, out); },
                 [&](const JsonObject& object) { AppendJsonObject(object, out); },
             },
             value.variant());
}

std::string DumpJson(const JsonValue& value) {
  std::string out;
  AppendJson(value, &out);
  return out;
}

}  // namespace assay
