// Mutates the kept TOML files in a fixed number of reproducible ways, and builds what is deep, long
// or many; a broken property aborts. The libFuzzer targets (preset fuzz) search further from the
// same corpora.

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "tests/fuzz/smoke.h"
#include "tests/fuzz/toml_properties.h"

namespace assay::testing {
namespace {

constexpr absl::string_view kPieces[] = {"[",
                                         "]",
                                         "[[",
                                         "]]",
                                         "{",
                                         "}",
                                         "=",
                                         ".",
                                         "\"",
                                         "'''",
                                         "\"\"\"",
                                         "#",
                                         "\n",
                                         "\r",
                                         "\\u0",
                                         "\\U0010ff",
                                         "1e999",
                                         "nan",
                                         "inf",
                                         "-0",
                                         "0x",
                                         "1979-05-27",
                                         ",",
                                         "_",
                                         "\0",
                                         "\xff",
                                         "\x1b",
                                         "\xe2\x80\xae",
                                         "[rule]",
                                         "9223372036854775808",
                                         "[hyperparameters]\n",
                                         "[contexts.a]\n",
                                         "a.b.c = 1\n"};

constexpr Smoke kSmoke{.seed = 20261123, .pieces = kPieces, .mutant_count = 2000};

TEST(TomlSmokeTest, SubmissionFilesHold) {
  MutateAll(kSmoke, "toml_submission", CheckSubmissionFile);
}

TEST(TomlSmokeTest, FacilityRoundsHold) {
  MutateAll(kSmoke, "toml_round", CheckFacilityRound);
}

TEST(TomlSmokeTest, SettingsHold) {
  MutateAll(kSmoke, "toml_config", CheckCliConfig);
}

// Depth and number cost a reader that follows them stack or quadratic time: such files are refused.
TEST(TomlSmokeTest, WhatIsDeepOrManyHolds) {
  struct Case {
    const char* name;
    absl::string_view piece;
    int count;
  };
  constexpr Case kCases[] = {{"name of a table", "a.", 50'000},
                             {"array", "[", 100'000},
                             {"inline table", "{a=", 100'000},
                             {"comment", "# a comment\n", 100'000},
                             {"text", "\"\"\"a", 100'000}};
  for (const absl::string_view start : {"[", "a = ", "[[", ""}) {
    for (const Case& c : kCases) {
      std::string text(start);
      for (int i = 0; i < c.count; ++i)
        absl::StrAppend(&text, c.piece);
      for (const auto check : {CheckSubmissionFile, CheckFacilityRound, CheckCliConfig})
        check(text);
    }
  }
  std::string keys;
  for (int i = 0; i < 1'000'000; ++i)
    absl::StrAppend(&keys, "k", i, " = 1\n");
  for (const auto check : {CheckSubmissionFile, CheckFacilityRound, CheckCliConfig})
    check(keys);
}

}  // namespace
}  // namespace assay::testing
