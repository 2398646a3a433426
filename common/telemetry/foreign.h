// Which processes of others used most of a node's processors while a run went on: the file
// foreign_N.jsonl, for operators alone (common/foreign_file.h). Each line is a time:
//
//   {"begin_ns": 1, "end_ns": 2, "largest": [{"pid": 7, "name": "backup", "cpu_ms": 120}]}

#ifndef COMMON_TELEMETRY_FOREIGN_H_
#define COMMON_TELEMETRY_FOREIGN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace assay::telemetry {

// Of one time, more are not kept.
inline constexpr size_t kForeignCountMax = 5;

struct ForeignProcess {
  int64_t pid = 0;
  std::string name;    // as the process calls itself: anything
  int64_t cpu_ms = 0;  // what it used in that time
  bool operator==(const ForeignProcess&) const = default;
};

// A time by the node's clock, and those who used most in it.
struct ForeignSpan {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  std::vector<ForeignProcess> largest;
  bool operator==(const ForeignSpan&) const = default;
};

// With its line end; names as Printable shows them.
std::string ForeignLine(const ForeignSpan& span);

// What is no such line is left out; a file that a crash has cut has one at its end.
std::vector<ForeignSpan> ReadForeign(absl::string_view text);

// What a process used of one processor, on average; 1 is all of it.
struct ForeignUse {
  int64_t pid = 0;
  std::string name;
  double share = 0;
};

// Those who used most from `begin_ns` to `end_ns`, the first most; at most kForeignCountMax. A span
// that is partly outside counts by the part that is not. None where nothing is known of that time.
std::vector<ForeignUse> LargestForeign(const std::vector<ForeignSpan>& spans, int64_t begin_ns,
                                       int64_t end_ns);

}  // namespace assay::telemetry

#endif  // COMMON_TELEMETRY_FOREIGN_H_
