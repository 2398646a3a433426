// Mutates the kept TOML files in a fixed number of reproducible ways, and builds what is deep, long
// or many; a broken property aborts. The libFuzzer targets (preset fuzz) search further from the
// same corpora.

#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "tests/fuzz/mutator.h"
#include "tests/fuzz/toml_properties.h"

namespace assay::testing {
namespace {

constexpr uint64_t kSeed = 20261123;
constexpr int kMutants = 2000;

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

void MutateAll(const std::string& corpus_name, void (*check)(absl::string_view)) {
  const std::vector<std::string> corpus = ReadCorpus(corpus_name);
  ASSERT_FALSE(corpus.empty());
  for (const std::string& text : corpus)
    check(text);
  std::cout << "seed " << kSeed << "\n";
  Mutator mutator(kSeed, kPieces);
  for (int i = 0; i < kMutants; ++i) {
    const std::string& text = mutator.Pick(corpus);
    check(mutator.Mutate(text, mutator.Pick(corpus)));
  }
}

TEST(TomlSmokeTest, SubmissionFilesHold) {
  MutateAll("toml_submission", CheckSubmissionFile);
}

TEST(TomlSmokeTest, FacilityRoundsHold) {
  MutateAll("toml_round", CheckFacilityRound);
}

TEST(TomlSmokeTest, SettingsHold) {
  MutateAll("toml_config", CheckCliConfig);
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
