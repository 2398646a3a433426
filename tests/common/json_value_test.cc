#include "common/json_value.h"

#include <cmath>
#include <limits>
#include <string>

#include "gtest/gtest.h"

#include "common/json_reader.h"

namespace assay {
namespace {

JsonValue Parse(const std::string& text) {
  const JsonResult result = ParseJson(text);
  EXPECT_EQ(result.error, JsonError::kNone) << text;
  return result.value;
}

// Expected results are those of Python 3.11.
struct PairCase {
  const char* a;
  const char* b;
  bool equal;
  Ordering ordering;
};

constexpr PairCase kPairs[] = {
    {"64", "64.0", true, Ordering::kEqual},
    {"1", "true", true, Ordering::kEqual},
    {"0", "false", true, Ordering::kEqual},
    {"1.0", "true", true, Ordering::kEqual},
    {"0.0", "-0.0", true, Ordering::kEqual},
    {"2", "true", false, Ordering::kGreater},
    {"9007199254740993", "9007199254740992.0", false, Ordering::kGreater},
    {"9007199254740992", "9007199254740992.0", true, Ordering::kEqual},
    {"9223372036854775807", "9223372036854775808.0", false, Ordering::kLess},
    {"-9223372036854775808", "-9223372036854775808.0", true, Ordering::kEqual},
    {"9223372036854775808", "9223372036854775808.0", true, Ordering::kEqual},
    {"10000000000000000000000000", "1e25", false, Ordering::kLess},
    {"10000000000000000905969664", "1e25", true, Ordering::kEqual},
    {"100000000000000000000", "5", false, Ordering::kGreater},
    {"-100000000000000000000", "-100000000000000000001", false, Ordering::kGreater},
    {"-100000000000000000000", "1e300", false, Ordering::kLess},
    {"100000000000000000000", "Infinity", false, Ordering::kLess},
    {"100000000000000000000", "0.5", false, Ordering::kGreater},
    {"3", "3.5", false, Ordering::kLess},
    {"-3", "-3.5", false, Ordering::kGreater},
    {"NaN", "NaN", false, Ordering::kUnordered},
    {"1", "NaN", false, Ordering::kUnordered},
    {"Infinity", "1e999", true, Ordering::kEqual},
    {"\"64\"", "64", false, Ordering::kTypeError},
    {"null", "0", false, Ordering::kTypeError},
    {"null", "null", true, Ordering::kTypeError},
    {"\"a\"", "\"a\"", true, Ordering::kTypeError},
    {"[1, 2]", "[1.0, 2]", true, Ordering::kTypeError},
    {"[1, 2]", "[2, 1]", false, Ordering::kTypeError},
    {"[NaN]", "[NaN]", true, Ordering::kTypeError},
    {"{\"x\": 1, \"y\": 2}", "{\"y\": 2, \"x\": 1.0}", true, Ordering::kTypeError},
    {"{\"x\": 1}", "{\"y\": 1}", false, Ordering::kTypeError},
    {"[]", "{}", false, Ordering::kTypeError},
    {"\"\\u00e9\"", "\"e\"", false, Ordering::kTypeError},
};

TEST(JsonValueTest, ComparesAsPython) {
  for (const PairCase& c : kPairs) {
    EXPECT_EQ(PythonEquals(Parse(c.a), Parse(c.b)), c.equal) << c.a << " == " << c.b;
    EXPECT_EQ(PythonEquals(Parse(c.b), Parse(c.a)), c.equal) << c.b << " == " << c.a;
    EXPECT_EQ(PythonCompare(Parse(c.a), Parse(c.b)), c.ordering) << c.a << " < " << c.b;
  }
}

TEST(JsonValueTest, NanIsTheSameAsItself) {
  EXPECT_TRUE(PythonSame(Parse("NaN"), Parse("NaN")));
  EXPECT_FALSE(PythonSame(Parse("NaN"), Parse("0")));
  EXPECT_TRUE(PythonSame(Parse("1"), Parse("true")));
}

TEST(JsonValueTest, TruthIsPythons) {
  for (const char* text : {"null", "false", "0", "0.0", "-0.0", "\"\"", "[]", "{}"}) {
    EXPECT_FALSE(PythonTruth(Parse(text))) << text;
  }
  for (const char* text : {"true", "1", "-1", "NaN", "\"0\"", "[0]", "{\"a\": null}", "1e-300",
                           "123456789012345678901234567890"}) {
    EXPECT_TRUE(PythonTruth(Parse(text))) << text;
  }
}

TEST(JsonValueTest, LengthCountsCodePoints) {
  EXPECT_EQ(PythonLength(Parse("\"a\\u00e9\\ud83d\\ude00\"")), 3);
  EXPECT_EQ(PythonLength(Parse("\"\\ud800\"")), 1);
  EXPECT_EQ(PythonLength(Parse("[1, [2, 3]]")), 2);
  EXPECT_EQ(PythonLength(Parse("{\"a\": 1, \"a\": 2}")), 1);
  EXPECT_EQ(PythonLength(Parse("5")), std::nullopt);
  EXPECT_EQ(PythonLength(Parse("null")), std::nullopt);
}

TEST(JsonValueTest, ContainsLooksIntoObjectsListsAndText) {
  EXPECT_EQ(PythonContains(Parse("{\"status\": null}"), "status"), true);
  EXPECT_EQ(PythonContains(Parse("{\"x\": 1}"), "status"), false);
  EXPECT_EQ(PythonContains(Parse("[\"status\"]"), "status"), true);
  EXPECT_EQ(PythonContains(Parse("[\"my status\"]"), "status"), false);
  EXPECT_EQ(PythonContains(Parse("\"my status\""), "status"), true);
  EXPECT_EQ(PythonContains(Parse("null"), "status"), std::nullopt);
  EXPECT_EQ(PythonContains(Parse("1"), "status"), std::nullopt);
}

struct ReprCase {
  double value;
  const char* repr;
};

constexpr ReprCase kReprs[] = {
    {0.0, "0.0"},
    {-0.0, "-0.0"},
    {1.0, "1.0"},
    {0.1, "0.1"},
    {1e-6, "1e-06"},
    {0.0001, "0.0001"},
    {0.00012375, "0.00012375"},
    {0.00001234, "1.234e-05"},
    {1e15, "1000000000000000.0"},
    {1e16, "1e+16"},
    {123456789012345680.0, "1.2345678901234568e+17"},
    {1e300, "1e+300"},
    {5e-324, "5e-324"},
    {0.30000000000000004, "0.30000000000000004"},
    {1.7976931348623157e308, "1.7976931348623157e+308"},
    {-2.5, "-2.5"},
};

TEST(JsonValueTest, FloatsPrintAsPythonRepr) {
  for (const ReprCase& c : kReprs)
    EXPECT_EQ(PythonFloatRepr(c.value), c.repr);
  EXPECT_EQ(PythonFloatRepr(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(PythonFloatRepr(std::nan("")), "nan");
}

struct TextCase {
  const char* json;
  const char* text;
};

constexpr TextCase kStrs[] = {
    {"\"closed\"", "closed"},
    {"null", "None"},
    {"true", "True"},
    {"0.5", "0.5"},
    {"1e999", "inf"},
    {"[\"closed\", 1, null]", "['closed', 1, None]"},
    {"{\"a\": [true]}", "{'a': [True]}"},
    {"[\"it's\"]", "[\"it's\"]"},
    {"[\"it's \\\"so\\\"\"]", "['it\\'s \"so\"']"},
    {"[\"\\n\\u0001\\\\\\ud800\"]", "['\\n\\x01\\\\\\ud800']"},
};

TEST(JsonValueTest, StrIsPythons) {
  for (const TextCase& c : kStrs)
    EXPECT_EQ(PythonStr(Parse(c.json)), c.text) << c.json;
}

TEST(JsonValueTest, DumpsAsPythonJson) {
  EXPECT_EQ(DumpJson(Parse("{\"a\":[1,2.50,null,true],\"b\":{}}")),
            "{\"a\": [1, 2.5, null, true], \"b\": {}}");
  EXPECT_EQ(DumpJson(Parse("[NaN,Infinity,-Infinity]")), "[NaN, Infinity, -Infinity]");
  EXPECT_EQ(DumpJson("\x01\n\t\"\\/\x7f"), "\"\\u0001\\n\\t\\\"\\\\/\\u007f\"");
  EXPECT_EQ(DumpJson("\u00e9\U0001F600"), "\"\\u00e9\\ud83d\\ude00\"");
  EXPECT_EQ(DumpJson("\xff\xc0\x80z"), "\"\\ufffd\\ufffd\\ufffdz\"");
}

}  // namespace
}  // namespace assay
