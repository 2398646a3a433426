// Mutates small files of datasets and power logs in a fixed number of reproducible ways; a broken
// property aborts. The libFuzzer targets (preset fuzz) search further from the same corpora.

#include <string>

#include "gtest/gtest.h"

#include "tests/fuzz/archive_properties.h"
#include "tests/fuzz/smoke.h"

namespace assay::testing {
namespace {

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

constexpr Smoke kSmoke{.seed = 20261124, .pieces = kPieces, .mutant_count = 3000};

TEST(ArchiveSmokeTest, RecordsHold) {
  MutateAll(kSmoke, "record", CheckRecords);
}

// Behind good checksums as well: a mutant is framed anew.
TEST(ArchiveSmokeTest, ExamplesHold) {
  MutateAll(kSmoke, "example", CheckExample);
  MutateAll(kSmoke, "example",
            [](absl::string_view bytes) { CheckRecords(dataset::FrameRecord(bytes)); });
}

TEST(ArchiveSmokeTest, ManifestsHold) {
  MutateAll(kSmoke, "manifest", CheckManifest);
}

TEST(ArchiveSmokeTest, PowerLogsHold) {
  MutateAll(kSmoke, "power", CheckPowerLog);
}

}  // namespace
}  // namespace assay::testing
