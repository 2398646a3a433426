// Mutates the kept packs in a fixed number of reproducible ways; a broken property aborts. The
// libFuzzer target (preset fuzz) searches further from the same corpus.

#include <string>

#include "gtest/gtest.h"

#include "common/rules/registry.h"
#include "tests/fuzz/pack_properties.h"
#include "tests/fuzz/smoke.h"

namespace assay::testing {
namespace {

constexpr uint64_t kSeed = 20211118;
constexpr int kMutants = 4000;

constexpr absl::string_view kPieces[] = {"{",
                                         "}",
                                         "[",
                                         "]",
                                         "\"",
                                         ",",
                                         ":",
                                         "0",
                                         "-1",
                                         "1e999",
                                         "NaN",
                                         "null",
                                         "true",
                                         "9223372036854775808",
                                         "\"enqueue\"",
                                         "\"greater\"",
                                         "\"operands\": [], ",
                                         "\"kind\": \"true\", ",
                                         "\"closed_deepcam\"",
                                         "\"common\""};

TEST(PackSmokeTest, BuiltInRoundsHold) {
  for (const rules::RuleSet* rules : rules::BuiltInRuleSets())
    CheckPackProperties(rules::WritePack(rules->data(), ""));
}

TEST(PackSmokeTest, TheCorpusAndItsMutantsHold) {
  MutateAll({.seed = kSeed, .pieces = kPieces, .mutant_count = kMutants}, "pack",
            CheckPackProperties);
}

}  // namespace
}  // namespace assay::testing
