// Mutates the kept corpora of a package's small files in a fixed number of reproducible ways; a
// broken property aborts. The libFuzzer targets (preset fuzz) search further from the same corpora.

#include <iostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "tests/fuzz/mutator.h"
#include "tests/fuzz/package_properties.h"

namespace assay::testing {
namespace {

constexpr uint64_t kSeed = 20231108;
constexpr int kMutants = 3000;

constexpr absl::string_view kPieces[] = {"rcp-bypass",
                                         "seed-checker-bypass",
                                         "rcp_bypass",
                                         "\n",
                                         "\r",
                                         "\r\n",
                                         "{",
                                         "}",
                                         "[",
                                         "\"",
                                         "\\u",
                                         ":",
                                         ",",
                                         "NaN",
                                         "null",
                                         "-1",
                                         "1e999",
                                         "\xEF\xBB",
                                         "\xC3",
                                         "\xE2\x80\xAE",
                                         "_",
                                         "node_0.txt",
                                         "scaling_factor",
                                         "division",
                                         "closed",
                                         "\x1b",
                                         "99999999999",
                                         "\\\\"};

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

TEST(PackageSmokeTest, ParametersHold) {
  MutateAll("package_params", CheckParamsProperties);
}

TEST(PackageSmokeTest, DescriptionsHold) {
  MutateAll("package_description", CheckDescriptionProperties);
}

TEST(PackageSmokeTest, DeepNestingHolds) {
  for (const absl::string_view piece : {"[", "{\"a\":", "\"", "\\", "-", "9"}) {
    std::string text;
    for (int i = 0; i < 100000; ++i)
      text += std::string(piece);
    CheckDescriptionProperties(text);
    CheckParamsProperties(text);
  }
}

}  // namespace
}  // namespace assay::testing
