// What was measured on a node at regular times while a run went on: the file telemetry_N.bin.
//
//   "ASSAYTM1"
//   frames: uint32 bytes of the payload, uint32 its CRC-32, then the payload, compressed by zlib
//
// The payload of the first frame is the header as JSON. That of each other is a block of at most
// kBlockSamples samples, column by column: the number of samples, the times in nanoseconds as
// second differences, and the values of each column as differences, all as zig-zag varints. Numbers
// are little-endian. A file that ends anywhere, or is damaged, is read up to its last whole frame.

#ifndef COMMON_TELEMETRY_SERIES_H_
#define COMMON_TELEMETRY_SERIES_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/file.h"

namespace assay::telemetry {

struct Column {
  std::string name;         // cpu.user
  std::string unit;         // ms, bytes, us, events, C, kHz, uJ
  bool is_counter = false;  // it only grows: what matters is by how much
  bool operator==(const Column&) const = default;
};

// The operator's word that a meter of parts shows the node's power, because it was compared.
struct Comparison {
  std::string meter;  // rapl
  std::string with;   // what was compared, when and how: for people
  bool operator==(const Comparison&) const = default;
};

struct Header {
  std::string boot_id;  // of the node
  int64_t wall_us = 0;  // its wall clock when its own showed node_ns
  int64_t node_ns = 0;  // the clock by which the node witnesses times (docs/adr/0192)
  std::vector<Column> columns;
  std::vector<Comparison> comparisons{};
  bool operator==(const Header&) const = default;
};

// In place of a value that could not be had.
inline constexpr int64_t kMissing = std::numeric_limits<int64_t>::min();

// At one sample a second a crash loses two minutes at most.
inline constexpr size_t kBlockSamples = 128;

// Writes such a file. Not thread-safe.
class SeriesWriter {
 public:
  // Makes the file anew. errno's code if it cannot.
  static absl::StatusOr<SeriesWriter> Create(const std::string& path, const Header& header);

  // Takes a sample; `values` has one for each column. A full block is written.
  absl::Status Append(int64_t node_ns, std::span<const int64_t> values);
  // Writes what waits.
  absl::Status Flush();

 private:
  SeriesWriter(UniqueFd file, size_t column_count)
      : file_(std::move(file)), columns_(column_count) {}

  UniqueFd file_;
  std::vector<int64_t> times_;
  std::vector<std::vector<int64_t>> columns_;
};

struct Series {
  Header header;
  std::vector<int64_t> at_ns;                 // of each sample, by the node's clock
  std::vector<std::vector<int64_t>> columns;  // values, in the header's order
  std::string damage;                         // why there is not more; empty: all is there
  // Of a series that was carried over to the clock of the run's node 0 (align.h): how far its times
  // may be off that clock, at most.
  std::optional<int64_t> clock_error_ns{};
};

// What a reader takes of a file that anybody may have made: the rest of it is damage.
struct ReadLimits {
  // Columns whose names begin with one of these are kept; empty: all.
  std::vector<std::string> prefixes;
  size_t value_count_max = size_t{64} << 20;  // times included
};

// DATA_LOSS if not even the header can be read.
absl::StatusOr<Series> ReadSeries(absl::string_view bytes, const ReadLimits& limits = {});

}  // namespace assay::telemetry

#endif  // COMMON_TELEMETRY_SERIES_H_
