#include "common/telemetry/series.h"

#include <fcntl.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/json_reader.h"
#include "common/json_value.h"
#include "common/log.h"
#include "common/status.h"

namespace assay::telemetry {
namespace {

constexpr absl::string_view kMagic = "ASSAYTM1";
constexpr size_t kFrameHeadBytes = 8;
// Of a payload before it is compressed: a thousand columns of numbers that never repeat are 2 MB.
constexpr size_t kPayloadBytesMax = 64 << 20;
constexpr size_t kColumnsMax = 20'000;

void PutUint32(uint32_t value, std::string* bytes) {
  for (int shift = 0; shift < 32; shift += 8)
    bytes->push_back(static_cast<char>(value >> shift));
}

uint32_t GetUint32(absl::string_view bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i)
    value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[static_cast<size_t>(i)])) << (8 * i);
  return value;
}

uint32_t Crc(absl::string_view bytes) {
  return static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

// Differences wrap around, so any two numbers have one.
void PutVarint(uint64_t difference, std::string* bytes) {
  const bool is_negative = (difference >> 63) != 0;
  uint64_t value = (difference << 1) ^ (is_negative ? ~uint64_t{0} : 0);
  for (; value >= 0x80; value >>= 7)
    bytes->push_back(static_cast<char>(value | 0x80));
  bytes->push_back(static_cast<char>(value));
}

std::optional<uint64_t> TakeVarint(absl::string_view* bytes) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes->front());
    bytes->remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) return (value >> 1) ^ ((value & 1) != 0 ? ~uint64_t{0} : 0);
  }
  return std::nullopt;
}

std::string Compressed(absl::string_view payload) {
  uLongf size = compressBound(static_cast<uLong>(payload.size()));
  std::string bytes(size, '\0');
  const int result = compress2(reinterpret_cast<Bytef*>(bytes.data()), &size,
                               reinterpret_cast<const Bytef*>(payload.data()),
                               static_cast<uLong>(payload.size()), Z_DEFAULT_COMPRESSION);
  CHECK(result == Z_OK) << "zlib cannot compress " << payload.size() << " bytes";
  bytes.resize(size);
  return bytes;
}

// nullopt if it is none, or more than a payload may be.
std::optional<std::string> Uncompressed(absl::string_view bytes) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return std::nullopt;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string payload;
  int result = Z_OK;
  while (result == Z_OK && payload.size() < kPayloadBytesMax) {
    const size_t size = payload.size();
    payload.resize(size + (64 << 10));
    stream.next_out = reinterpret_cast<Bytef*>(payload.data() + size);
    stream.avail_out = static_cast<uInt>(payload.size() - size);
    result = inflate(&stream, Z_NO_FLUSH);
    payload.resize(payload.size() - stream.avail_out);
    if (result == Z_OK && stream.avail_out > 0 && stream.avail_in == 0) break;  // it ends too early
  }
  inflateEnd(&stream);
  if (result != Z_STREAM_END) return std::nullopt;
  return payload;
}

std::string Frame(absl::string_view payload) {
  const std::string bytes = Compressed(payload);
  std::string frame;
  PutUint32(static_cast<uint32_t>(bytes.size()), &frame);
  PutUint32(Crc(bytes), &frame);
  return frame + bytes;
}

// The payload of the frame that `bytes` begins with, and is taken from it.
absl::StatusOr<std::string> TakeFrame(absl::string_view* bytes) {
  if (bytes->size() < kFrameHeadBytes) return absl::DataLossError("it ends within a frame");
  const size_t size = GetUint32(*bytes);
  const uint32_t crc = GetUint32(bytes->substr(4));
  if (bytes->size() - kFrameHeadBytes < size) return absl::DataLossError("it ends within a frame");
  const absl::string_view body = bytes->substr(kFrameHeadBytes, size);
  if (Crc(body) != crc) return absl::DataLossError("a frame has other bytes than were written");
  std::optional<std::string> payload = Uncompressed(body);
  if (!payload.has_value()) return absl::DataLossError("a frame cannot be decompressed");
  bytes->remove_prefix(kFrameHeadBytes + size);
  return *std::move(payload);
}

std::string HeaderText(const Header& header) {
  JsonList columns;
  for (const Column& column : header.columns)
    columns.emplace_back(JsonObject{
        {"name", column.name}, {"unit", column.unit}, {"is_counter", column.is_counter}});
  JsonList comparisons;
  for (const Comparison& comparison : header.comparisons)
    comparisons.emplace_back(JsonObject{{"meter", comparison.meter}, {"with", comparison.with}});
  return DumpJson(JsonValue(JsonObject{{"boot_id", header.boot_id},
                                       {"wall_us", header.wall_us},
                                       {"node_ns", header.node_ns},
                                       {"columns", JsonValue(std::move(columns))},
                                       {"comparisons", JsonValue(std::move(comparisons))}}));
}

std::string TextOf(const JsonValue& object, absl::string_view name) {
  const JsonValue* const member = object.Find(name);
  return member == nullptr || member->AsString() == nullptr ? "" : *member->AsString();
}

int64_t IntegerOf(const JsonValue& object, absl::string_view name) {
  const JsonValue* const member = object.Find(name);
  return member == nullptr ? 0 : member->AsInt64().value_or(0);
}

absl::StatusOr<Header> ReadHeader(absl::string_view text) {
  const JsonResult parsed = ParseJson(text);
  const JsonValue* const columns =
      parsed.error == JsonError::kNone ? parsed.value.Find("columns") : nullptr;
  if (columns == nullptr || columns->AsList() == nullptr)
    return absl::DataLossError("its header names no columns");
  if (columns->AsList()->size() > kColumnsMax)
    return absl::DataLossError(
        absl::StrCat("its header names more than ", kColumnsMax, " columns"));
  Header header{.boot_id = TextOf(parsed.value, "boot_id"),
                .wall_us = IntegerOf(parsed.value, "wall_us"),
                .node_ns = IntegerOf(parsed.value, "node_ns"),
                .columns = {}};
  for (const JsonValue& column : *columns->AsList()) {
    const JsonValue* const is_counter = column.Find("is_counter");
    header.columns.push_back({TextOf(column, "name"), TextOf(column, "unit"),
                              is_counter != nullptr && is_counter->AsBool().value_or(false)});
  }
  const JsonValue* const comparisons = parsed.value.Find("comparisons");
  if (comparisons == nullptr || comparisons->AsList() == nullptr) return header;
  for (const JsonValue& comparison : *comparisons->AsList())
    header.comparisons.push_back({TextOf(comparison, "meter"), TextOf(comparison, "with")});
  return header;
}

bool IsWanted(absl::string_view name, const std::vector<std::string>& prefixes) {
  return prefixes.empty() ||
         std::any_of(prefixes.begin(), prefixes.end(),
                     [name](const std::string& prefix) { return absl::StartsWith(name, prefix); });
}

absl::Status ReadBlock(absl::string_view payload, Series* series) {
  const absl::Status damaged = absl::DataLossError("a block has less than it says");
  const std::optional<uint64_t> count = TakeVarint(&payload);
  if (!count.has_value() || *count > payload.size() || *count > kBlockSamples) return damaged;
  std::vector<int64_t> times;
  uint64_t time = 0;
  uint64_t step = 0;
  for (uint64_t i = 0; i < *count; ++i) {
    const std::optional<uint64_t> difference = TakeVarint(&payload);
    if (!difference.has_value()) return damaged;
    step += *difference;
    time += step;
    times.push_back(static_cast<int64_t>(time));
  }
  std::vector<std::vector<int64_t>> columns(series->columns.size());
  for (std::vector<int64_t>& column : columns) {
    uint64_t value = 0;
    for (uint64_t i = 0; i < *count; ++i) {
      const std::optional<uint64_t> difference = TakeVarint(&payload);
      if (!difference.has_value()) return damaged;
      value += *difference;
      column.push_back(static_cast<int64_t>(value));
    }
  }
  series->at_ns.insert(series->at_ns.end(), times.begin(), times.end());
  for (size_t c = 0; c < columns.size(); ++c)
    series->columns[c].insert(series->columns[c].end(), columns[c].begin(), columns[c].end());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SeriesWriter> SeriesWriter::Create(const std::string& path, const Header& header) {
  UniqueFd file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kPrivateFile));
  if (!file.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  RETURN_IF_ERROR(WriteAll(file.get(), absl::StrCat(kMagic, Frame(HeaderText(header)))));
  return SeriesWriter(std::move(file), header.columns.size());
}

absl::Status SeriesWriter::Append(int64_t node_ns, std::span<const int64_t> values) {
  CHECK(values.size() == columns_.size()) << values.size() << " values of " << columns_.size();
  times_.push_back(node_ns);
  for (size_t c = 0; c < values.size(); ++c)
    columns_[c].push_back(values[c]);
  return times_.size() < kBlockSamples ? absl::OkStatus() : Flush();
}

absl::Status SeriesWriter::Flush() {
  if (times_.empty()) return absl::OkStatus();
  std::string payload;
  PutVarint(times_.size(), &payload);
  uint64_t last = 0;
  uint64_t step = 0;
  for (const int64_t time : times_) {
    const uint64_t passed = static_cast<uint64_t>(time) - last;
    PutVarint(passed - step, &payload);
    step = passed;
    last = static_cast<uint64_t>(time);
  }
  for (std::vector<int64_t>& column : columns_) {
    last = 0;
    for (const int64_t value : column) {
      PutVarint(static_cast<uint64_t>(value) - last, &payload);
      last = static_cast<uint64_t>(value);
    }
    column.clear();
  }
  times_.clear();
  return WriteAll(file_.get(), Frame(payload));
}

absl::StatusOr<Series> ReadSeries(absl::string_view bytes, const ReadLimits& limits) {
  if (bytes.substr(0, kMagic.size()) != kMagic)
    return absl::DataLossError("this is no telemetry: it does not begin with ASSAYTM1");
  bytes.remove_prefix(kMagic.size());
  ASSIGN_OR_RETURN(const std::string text, TakeFrame(&bytes));
  ASSIGN_OR_RETURN(Header header, ReadHeader(text));
  std::vector<size_t> kept;
  for (size_t c = 0; c < header.columns.size(); ++c)
    if (IsWanted(header.columns[c].name, limits.prefixes)) kept.push_back(c);
  Series series;
  series.columns.resize(kept.size());
  while (!bytes.empty() && series.damage.empty()) {
    const absl::StatusOr<std::string> payload = TakeFrame(&bytes);
    Series block;
    block.columns.resize(header.columns.size());
    const absl::Status read = payload.ok() ? ReadBlock(*payload, &block) : payload.status();
    series.damage = std::string(read.message());
    if (!read.ok()) break;
    if ((series.at_ns.size() + block.at_ns.size()) * (kept.size() + 1) > limits.value_count_max) {
      series.damage = "it has more samples than are read";
      break;
    }
    series.at_ns.insert(series.at_ns.end(), block.at_ns.begin(), block.at_ns.end());
    for (size_t k = 0; k < kept.size(); ++k)
      series.columns[k].insert(series.columns[k].end(), block.columns[kept[k]].begin(),
                               block.columns[kept[k]].end());
  }
  for (size_t k = 0; k < kept.size(); ++k)
    header.columns[k] = header.columns[kept[k]];
  header.columns.resize(kept.size());
  series.header = std::move(header);
  return series;
}

}  // namespace assay::telemetry
