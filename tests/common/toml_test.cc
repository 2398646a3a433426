#include "common/toml.h"

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

std::string Repeat(absl::string_view part, int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    absl::StrAppend(&text, part);
  return text;
}

std::string Message(absl::string_view text) {
  const ParsedToml parsed = ParseToml(text);
  return parsed.problem.has_value() ? parsed.problem->message : "";
}

TEST(TomlTest, WhatIsInOrderIsParsed) {
  const ParsedToml parsed = ParseToml("a.b = 1\n[c]\nd = [1.5, 2.5]\n");

  ASSERT_FALSE(parsed.problem.has_value());
  EXPECT_EQ(parsed.table.at_path("a.b").value<int>(), 1);
  EXPECT_EQ(parsed.table.at_path("c.d[1]").value<double>(), 2.5);
}

TEST(TomlTest, AProblemOfTheGrammarHasItsPlace) {
  const ParsedToml parsed = ParseToml("a = 1\nb = ]\n");

  ASSERT_TRUE(parsed.problem.has_value());
  EXPECT_THAT(ToStatus(*parsed.problem, "x.toml"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("x.toml:2:5: ")));
}

// Each of these ends toml++ by exhausting the stack, or keeps a reader busy for minutes, if it
// comes through; or hides such a thing behind what a careless look takes for a string, comment or
// value.
TEST(TomlTest, WhatExceedsALimitNeverReachesTheParser) {
  const std::string long_name = Repeat("a.", 50'000) + "a";
  const struct {
    const char* name;
    std::string text;
    const char* message;
  } cases[] = {
      {"header", absl::StrCat("[", long_name, "]\n"), "parts"},
      {"header of an array", absl::StrCat("[[", long_name, "]]\n"), "parts"},
      {"header not closed", absl::StrCat("[", long_name), "parts"},
      {"key", absl::StrCat(long_name, " = 1\n"), "parts"},
      {"quoted key", absl::StrCat(Repeat("\"a\".", 20'000), "a = 1\n"), "parts"},
      {"literal key", absl::StrCat(Repeat("'a'.", 20'000), "a = 1\n"), "parts"},
      {"spaced key", absl::StrCat(Repeat("a . ", 20'000), "a = 1\n"), "parts"},
      {"inline table", absl::StrCat("x = {", long_name, " = 1}\n"), "parts"},
      {"second member", absl::StrCat("x = {y = 1, ", long_name, " = 1}\n"), "parts"},
      {"behind a list", absl::StrCat("x = {y = [1], ", long_name, " = 1}\n"), "parts"},
      {"behind a byte order mark", absl::StrCat("\xEF\xBB\xBF[", long_name, "]\n"), "parts"},
      {"behind a no-break space", absl::StrCat("\xC2\xA0[", long_name, "]\n"), "parts"},
      {"behind a string of five quotes",
       absl::StrCat("x = [\"\"\"a\"\"\"\"\", {", long_name, " = 1}]"), "parts"},
      {"behind a literal of four quotes", absl::StrCat("x = ['''a'''', {", long_name, " = 1}]"),
       "parts"},
      {"behind an escaped quote", absl::StrCat("x = [\"\\\"\", {", long_name, " = 1}]"), "parts"},
      {"behind a backslash that is none", absl::StrCat("x = ['\\', {", long_name, " = 1}]"),
       "parts"},
      {"behind a comment with a quote", absl::StrCat("# \"\n[", long_name, "]\n"), "parts"},
      {"lists", absl::StrCat("x = ", Repeat("[", 100'000)), "within each other"},
      {"tables", absl::StrCat("x = ", Repeat("{a=", 50'000)), "within each other"},
      {"keys", Repeat("a=1\n", 60'000), "names"},
      {"headers", Repeat("[a]\n", 60'000), "names"},
      {"keys of two parts", Repeat("a.b=1\n", 2'500), "names"},
      {"size", std::string(static_cast<size_t>(kTomlBytesMax) + 1, '#'), "bytes"},
  };
  for (const auto& c : cases)
    EXPECT_THAT(Message(c.text), HasSubstr(c.message)) << c.name;
}

TEST(TomlTest, TheLimitSaysWhereItIsExceeded) {
  const ParsedToml parsed =
      ParseToml("a = \"\"\"\n\n\"\"\"\n\n[a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a]\n");

  ASSERT_TRUE(parsed.problem.has_value());
  EXPECT_EQ(parsed.problem->line, 5);
  EXPECT_EQ(parsed.problem->column, 33);
}

// Points, brackets and signs in strings, comments and numbers are no names.
TEST(TomlTest, WhatOnlyLooksLikeTooMuchIsFine) {
  const struct {
    const char* name;
    std::string text;
  } cases[] = {
      {"string", absl::StrCat("a = \"", Repeat(".[{=", 10'000), "\"\n")},
      {"literal", absl::StrCat("a = '", Repeat(".[{=", 10'000), "'\n")},
      {"long string", absl::StrCat("a = \"\"\"", Repeat(".[{=\n", 10'000), "\"\"\"\n")},
      {"comment", absl::StrCat("# ", Repeat(".[{=", 10'000), "\n")},
      {"numbers", absl::StrCat("a = [", Repeat("1.5,\n", 20'000), "]\n")},
      {"tables of a list", absl::StrCat("a = [", Repeat("{b = 1.5},\n", 3'000), "]\n")},
      {"rules", Repeat("[[rule]]\nid = \"x\"\nkey = \"a.b.c\"\n", 1'000)},
  };
  for (const auto& c : cases)
    EXPECT_EQ(Message(c.text), "") << c.name;
}

// Every mutant is parsed or refused; what could end the process shows under any of our presets.
TEST(TomlTest, MutantsAreParsedOrRefused) {
  const std::string good =
      "round = \"hpc-3.0.0\"\nlist = [1.5, {a.b = 'x', c = \"\"\"y\"\"\"}]\n# remark\n[t.\"u "
      "v\"]\nd = "
      "1979-05-27T07:32:00Z\n[[r]]\ne = true\n";
  const std::string pieces[] = {
      "[", "]", "{", "}",  "\"", "'", "\"\"\"", "'''",          "\\",       ".",
      "=", ",", "#", "\n", "\r", "a", "1",      "\xEF\xBB\xBF", "\xC2\xA0", "\xFF"};
  constexpr unsigned kSeed = 20'261'122;
  std::mt19937 random(kSeed);
  const auto below = [&](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  int parsed_count = 0;
  for (int i = 0; i < 5'000; ++i) {
    std::string text = good;
    for (size_t edits = below(4) + 1; edits > 0; --edits) {
      const std::string& piece = pieces[below(std::size(pieces))];
      text.replace(below(text.size()), below(3), Repeat(piece, below(20) == 0 ? 5'000 : 1));
    }
    parsed_count += ParseToml(text).problem.has_value() ? 0 : 1;
  }

  EXPECT_GT(parsed_count, 50) << "the mutants are too wild to reach the parser, seed " << kSeed;
}

}  // namespace
}  // namespace assay
