#include "common/json_reader.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

TEST(JsonReaderTest, TakesPythonsDialect) {
  for (const char* text : {"NaN",
                           "Infinity",
                           "-Infinity",
                           "-0",
                           "1e5",
                           "1E+5",
                           "12.4E-2",
                           "1e999",
                           "-1e999",
                           "\"\\ud800\"",
                           "\"\\udc00\\ud800\"",
                           "\"\x7f\xfc\x85\"",
                           " \t\r\n1 \n",
                           "\"\\/\\b\\f\"",
                           "{\"a\": 1, \"a\": 2}",
                           "[]",
                           "{}",
                           "[ ]",
                           "{ }",
                           "\"\"",
                           "123456789012345678901234567890"}) {
    EXPECT_EQ(ParseJson(text).error, JsonError::kNone) << text;
  }
}

TEST(JsonReaderTest, RefusesWhatPythonRefuses) {
  for (const char* text : {"",
                           " ",
                           "nan",
                           "-NaN",
                           "+1",
                           ".5",
                           "1.",
                           "01",
                           "-01",
                           "-",
                           "1e",
                           "1e+",
                           "0x10",
                           "1_0",
                           "True",
                           "None",
                           "'a'",
                           "[1,]",
                           "{\"a\": 1,}",
                           "{,}",
                           "{\"a\" 1}",
                           "{a: 1}",
                           "{1: 2}",
                           "[1 2]",
                           "\"a",
                           "\"\\x41\"",
                           "\"\\U00000041\"",
                           "\"\\'\"",
                           "\"\\u12\"",
                           "\"\\u12g4\"",
                           "\"\x01\"",
                           "\"a\nb\"",
                           "1 2",
                           "\v1",
                           "1\f",
                           "nul",
                           "tru",
                           "Infinit",
                           "-Inf",
                           "[",
                           "{",
                           "]",
                           "[1",
                           "{\"a\": ",
                           "{\"a\"",
                           "\\"}) {
    EXPECT_EQ(ParseJson(text).error, JsonError::kSyntax) << text;
  }
  EXPECT_EQ(ParseJson(absl::string_view("1\0", 2)).error, JsonError::kSyntax);
}

TEST(JsonReaderTest, BytesAreLatin1) {
  EXPECT_EQ(*ParseJson("\"\xe9\"").value.AsString(), "\u00e9");
  EXPECT_EQ(*ParseJson("\"\xc3\xa9\"").value.AsString(), "\u00c3\u00a9");
}

TEST(JsonReaderTest, SurrogatePairsJoinAndLoneOnesStay) {
  EXPECT_EQ(*ParseJson("\"\\ud83d\\ude00\"").value.AsString(), "\U0001F600");
  EXPECT_EQ(*ParseJson("\"\\ud83dx\"").value.AsString(), "\xED\xA0\xBDx");
  EXPECT_EQ(*ParseJson("\"\\ud83d\\u0041\"").value.AsString(),
            "\xED\xA0\xBD"
            "A");
  EXPECT_EQ(*ParseJson("\"\\ud83d\\ud83d\\ude00\"").value.AsString(), "\xED\xA0\xBD\U0001F600");
}

TEST(JsonReaderTest, TheLastDuplicateWins) {
  std::string text = "{";
  for (int i = 0; i < 100; ++i)
    absl::StrAppend(&text, "\"k", i % 40, "\": ", i, ", ");
  const JsonValue value = ParseJson(absl::StrCat(text, "\"k7\": true}")).value;

  EXPECT_EQ(value.AsObject()->size(), 40u);
  EXPECT_EQ(value.Find("k7")->AsBool(), true);
  EXPECT_EQ(value.Find("k3")->AsInt64(), 83);
  EXPECT_EQ(value.Find("k39")->AsInt64(), 79);
  EXPECT_EQ(value.Find("k40"), nullptr);
}

TEST(JsonReaderTest, DepthIsLimited) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };

  EXPECT_EQ(ParseJson(nested(kJsonDepthMax)).error, JsonError::kNone);
  EXPECT_EQ(ParseJson(nested(kJsonDepthMax + 1)).error, JsonError::kTooDeep);
  EXPECT_EQ(ParseJson(nested(100000)).error, JsonError::kTooDeep);
  EXPECT_EQ(ParseJson(std::string(1000000, '[')).error, JsonError::kTooDeep);
}

TEST(JsonReaderTest, IntegersAreExactUpToTheirLimit) {
  const std::string longest(kJsonIntegerDigitsMax, '9');

  EXPECT_EQ(DumpJson(ParseJson(longest).value), longest);
  EXPECT_EQ(ParseJson("-" + longest).error, JsonError::kNone);
  EXPECT_EQ(ParseJson(longest + "9").error, JsonError::kIntegerTooLong);
  EXPECT_EQ(ParseJson(longest + "9.5").error, JsonError::kNone);
}

}  // namespace
}  // namespace assay
