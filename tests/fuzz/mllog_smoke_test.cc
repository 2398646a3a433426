// Mutates the kept corpus in a fixed number of reproducible ways; a broken property aborts. The
// libFuzzer target (preset fuzz) searches further from the same corpus.

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "tests/fuzz/mllog_properties.h"
#include "tests/fuzz/smoke.h"

namespace assay::testing {
namespace {

constexpr uint64_t kSeed = 20201106;
constexpr int kMutants = 4000;

// Pieces that mean something to the parser.
constexpr absl::string_view kPieces[] = {
    ":::MLLOG ", "{",    "}",       "[",      "]",    "\"",   "\\u",  "\\ud83d", ",",    ":",
    "NaN",       "null", "-",       "1e999",  "\r",   "\n",   "\x85", "\x1c",    "true", "0.1",
    "\"key\":",  "[[",   "{\"a\":", "\"\\\"", "9999", "\xa0", "e",    "time_ms", "\t",   "\x01"};

TEST(MllogSmokeTest, TheCorpusAndItsMutantsHold) {
  MutateAll({.seed = kSeed, .pieces = kPieces, .mutant_count = kMutants}, "mllog",
            CheckMllogProperties);
}

TEST(MllogSmokeTest, DeepNestingHolds) {
  for (const absl::string_view piece : {"[", "{\"a\":", "[{\"a\":", "\"", "-"}) {
    std::string text = ":::MLLOG {\"time_ms\": 1, \"value\": ";
    for (int i = 0; i < 100000; ++i)
      absl::StrAppend(&text, piece);
    CheckMllogProperties(text);
  }
}

}  // namespace
}  // namespace assay::testing
