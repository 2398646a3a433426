// Mutates small files of datasets and power logs in a fixed number of reproducible ways; a broken
// property aborts. The libFuzzer targets (preset fuzz) search further from the same corpora.

#include <iostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "tests/fuzz/archive_properties.h"
#include "tests/fuzz/mutator.h"

namespace assay::testing {
namespace {

constexpr uint64_t kSeed = 20261124;
constexpr int kMutants = 3000;

constexpr absl::string_view kPieces[] = {"{",
                                         "}",
                                         "[",
                                         "]",
                                         "\"",
                                         ",",
                                         ":",
                                         "-1",
                                         "1e999",
                                         "null",
                                         "4294967296",
                                         "..",
                                         "/",
                                         "NaN",
                                         "\xff\xff",
                                         {"\0", 1},
                                         "\x1f\x8b",
                                         "\x89HDF",
                                         "\x7f\xff",
                                         "\x80\x80\x80\x80\x80\x80\x80\x80\x01",
                                         "9223372036854775807"};

void MutateAll(const std::string& corpus_name, void (*check)(absl::string_view)) {
  const std::vector<std::string> corpus = ReadCorpus(corpus_name);
  ASSERT_FALSE(corpus.empty());
  for (const std::string& bytes : corpus)
    check(bytes);
  std::cout << "seed " << kSeed << "\n";
  Mutator mutator(kSeed, kPieces);
  for (int i = 0; i < kMutants; ++i) {
    const std::string& bytes = mutator.Pick(corpus);
    check(mutator.Mutate(bytes, mutator.Pick(corpus)));
  }
}

TEST(ArchiveSmokeTest, RecordsHold) {
  MutateAll("record", CheckRecords);
}

// Behind good checksums as well: a mutant is framed anew.
TEST(ArchiveSmokeTest, ExamplesHold) {
  MutateAll("example", CheckExample);
  MutateAll("example", [](absl::string_view bytes) { CheckRecords(dataset::FrameRecord(bytes)); });
}

TEST(ArchiveSmokeTest, ManifestsHold) {
  MutateAll("manifest", CheckManifest);
}

TEST(ArchiveSmokeTest, PowerLogsHold) {
  MutateAll("power", CheckPowerLog);
}

}  // namespace
}  // namespace assay::testing
