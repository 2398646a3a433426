// What the MLPerf HPC paper prints about round v0.7, as data: its entries, tables 4 to 6, and the
// numbers in its captions and prose.

#ifndef COMMON_ANALYSIS_PUBLISHED_V0_7_H_
#define COMMON_ANALYSIS_PUBLISHED_V0_7_H_

#include <array>
#include <span>

#include "common/analysis/entry.h"
#include "common/analysis/published.h"

namespace assay::analysis {

// An entry's folder names and what the paper calls it.
struct PaperEntry {
  const char* organization;  // later rounds reuse names of systems
  const char* system;
  const char* benchmark;
  const char* name;     // "ABCI-512"
  const char* subject;  // "CosmoFlow/ABCI-512"
};
std::span<const PaperEntry> PaperEntries();

// The cells of an entry's row, in the order of the table's columns.
struct Table4Row {
  const char* subject;
  std::array<const char*, 1> cells;
};
struct Table5Row {
  const char* subject;
  std::array<const char*, 3> cells;
};
struct Table6Row {
  const char* subject;
  std::array<const char*, 10> cells;
};
std::span<const Table4Row> Table4();
std::span<const Table5Row> Table5();
std::span<const Table6Row> Table6();

// Why a number differs; "" for all others. Keyed as PublishedNumber is.
const char* WhyDifferent(const PublishedNumber& number);

// The captions and the prose: 25 numbers, computed from the entries given, in order.
std::vector<PublishedNumber> CaptionNumbers(std::span<const Characteristics> entries);
std::vector<PublishedNumber> ProseNumbers(std::span<const Characteristics> entries);

// The entry that the paper calls `subject`, or null.
const Characteristics* FindSubject(std::span<const Characteristics> entries,
                                   absl::string_view subject);

// Sets `computed`, `rounded`, `is_equal` and `why` from a value; NaN is none.
void Settle(double value, PublishedNumber* number);

}  // namespace assay::analysis

#endif  // COMMON_ANALYSIS_PUBLISHED_V0_7_H_
