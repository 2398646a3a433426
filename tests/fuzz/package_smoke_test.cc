// Mutates the kept corpora of a package's small files in a fixed number of reproducible ways; a
// broken property aborts. The libFuzzer targets (preset fuzz) search further from the same corpora.

#include <string>

#include "gtest/gtest.h"

#include "tests/fuzz/package_properties.h"
#include "tests/fuzz/smoke.h"

namespace assay::testing {
namespace {

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

constexpr Smoke kSmoke{.seed = 20231108, .pieces = kPieces, .mutant_count = 3000};

TEST(PackageSmokeTest, ParametersHold) {
  MutateAll(kSmoke, "package_params", CheckParamsProperties);
}

TEST(PackageSmokeTest, DescriptionsHold) {
  MutateAll(kSmoke, "package_description", CheckDescriptionProperties);
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
