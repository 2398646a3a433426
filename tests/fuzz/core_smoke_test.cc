// Plays the kept courses of commands, mutants of them, and random ones; a broken property aborts.
// The libFuzzer target (preset fuzz) searches further from the same corpus.

#include <iostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "tests/fuzz/core_properties.h"
#include "tests/fuzz/mutator.h"

namespace assay::testing {
namespace {

constexpr uint64_t kSeed = 20261122;
constexpr int kMutants = 1000;
constexpr int kRandomCourses = 1000;
constexpr uint32_t kCourseBytesMax = 2500;

constexpr absl::string_view kPieces[] = {{"\0", 1}, {"\x01", 1}, {"\x1f", 1}, {"\xff", 1}};

TEST(CoreSmokeTest, TheCorpusItselfHolds) {
  for (const std::string& course : ReadCorpus("core"))
    CheckCoreProperties(course);
}

TEST(CoreSmokeTest, MutantsOfTheCorpusHold) {
  const std::vector<std::string> corpus = ReadCorpus("core");
  ASSERT_FALSE(corpus.empty());
  std::cout << "seed " << kSeed << "\n";
  Mutator mutator(kSeed, kPieces);
  for (int i = 0; i < kMutants; ++i) {
    const std::string& course = mutator.Pick(corpus);
    CheckCoreProperties(mutator.Mutate(course, mutator.Pick(corpus)));
  }
}

TEST(CoreSmokeTest, RandomCoursesHold) {
  std::cout << "seed " << kSeed << "\n";
  Mutator random(kSeed + 1, kPieces);
  for (int i = 0; i < kRandomCourses; ++i) {
    std::string course(random.Below(kCourseBytesMax), '\0');
    for (char& c : course)
      c = static_cast<char>(random.Below(256));
    CheckCoreProperties(course);
  }
}

}  // namespace
}  // namespace assay::testing
