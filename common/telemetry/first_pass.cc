#include "common/telemetry/first_pass.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/telemetry/bytes.h"
#include "common/telemetry/cache_record.h"

namespace assay::telemetry {
namespace {

// The prefix of the counters that see every byte which such a file system gets from storage; empty:
// there are none, or what they count is not what files have (compression).
absl::string_view CountersOf(absl::string_view file_system) {
  if (file_system == "ext4" || file_system == "xfs") return "disk.";
  if (file_system == "nfs") return "server.nfs.";
  if (file_system == "lustre") return "server.lustre.";
  return "";
}

// Sets what the node read; returns why that is not known.
std::string Measure(const CacheRecord& record, const Series* series, int64_t end_ms,
                    NodePass* pass) {
  if (series == nullptr) return "no telemetry";
  if (record.files_elsewhere > 0)
    return absl::StrCat(record.files_elsewhere, " files of the dataset lie on another file system");
  if (record.other_runs > 0 && !pass->is_cold_proven)
    return "other runs on the machine had data in memory";
  const absl::string_view counters = CountersOf(record.file_system);
  if (counters.empty())
    return absl::StrCat(
        "no counter tells what is read of files on ",
        record.file_system.empty() ? "its dataset's file system" : record.file_system);
  const Growth storage(*series, std::span(&counters, 1), ".read");
  const NodeBytes bytes(series);
  const std::optional<int64_t> end_ns = bytes.SampleAfter(NodeNsAt(series->header, end_ms));
  if (!end_ns.has_value()) return "its telemetry ends before epoch 1 does";
  const std::optional<double> counted = storage.Between(bytes.first_ns(), *end_ns);
  if (!counted.has_value()) return "its telemetry has a gap";
  const BytesRead read = bytes.Between(bytes.first_ns(), *end_ns);
  pass->storage_bytes =
      std::max({*counted, read.disks.value_or(0) + read.servers.value_or(0), read.run.value_or(0)});
  pass->network_bytes = read.network.value_or(0);
  return "";
}

}  // namespace

std::optional<double> FirstPass::Share() const {
  if (!unknown.empty() || needed_bytes <= 0) return std::nullopt;
  return storage_bytes / needed_bytes;
}

bool FirstPass::IsShort() const {
  return unknown.empty() && storage_bytes + declared_bytes < (1 - kFirstPassSlack) * needed_bytes;
}

bool FirstPass::IsUnexplained() const {
  return IsShort() && is_cold_proven && declared_bytes == 0 &&
         storage_bytes + network_bytes < (1 - kFirstPassSlack) * needed_bytes;
}

std::string FirstPass::Sentence() const {
  constexpr double kMega = 1e6;
  std::string text = absl::StrFormat(
      "%.1f MB of %.1f MB of training data (%.1f %%) came from storage from the reset of caches to "
      "the end of epoch 1; received from other nodes meanwhile: %.1f MB",
      storage_bytes / kMega, needed_bytes / kMega, 100 * Share().value_or(0),
      network_bytes / kMega);
  if (declared_bytes > 0)
    absl::StrAppendFormat(&text, "; declared as cached on nodes: %.1f MB", declared_bytes / kMega);
  if (!is_cold_proven) absl::StrAppend(&text, "; that caches were cold is not proven");
  return text;
}

NodePass NodePassOf(int node, const RunPhases& phases, const Series* series,
                    absl::string_view caches) {
  const CacheRecord record = ReadCacheRecord(caches);
  NodePass pass{.node = node,
                .is_cold_proven = record.coldness == "cold" || record.coldness == "bounded"};
  if (record.train_bytes.has_value()) pass.train_bytes = static_cast<double>(*record.train_bytes);
  pass.unknown = phases.epochs.empty()
                     ? "the log has no epoch that ended"
                     : Measure(record, series, phases.epochs.front().end_ms, &pass);
  return pass;
}

FirstPass FirstPassOf(const RunPhases& phases, std::span<const NodePass> nodes, int node_count,
                      std::optional<int64_t> train_samples) {
  FirstPass pass{.declared_bytes = static_cast<double>(phases.declared_cache_bytes),
                 .is_cold_proven = true};
  if (!phases.run_start_ms.has_value() || phases.epochs.empty())
    pass.unknown = "the log has no epoch that ended";
  std::optional<double> train_bytes;
  for (const NodePass& node : nodes) {
    if (!node.unknown.empty() && pass.unknown.empty())
      pass.unknown = absl::StrCat("node ", node.node, ": ", node.unknown);
    pass.storage_bytes += node.storage_bytes;
    pass.network_bytes += node.network_bytes;
    pass.is_cold_proven = pass.is_cold_proven && node.is_cold_proven;
    if (node.train_bytes.has_value())
      train_bytes = std::min(train_bytes.value_or(*node.train_bytes), *node.train_bytes);
  }
  if (pass.unknown.empty() && static_cast<int>(nodes.size()) < node_count)
    pass.unknown = absl::StrCat("only ", nodes.size(), " of ", node_count, " nodes left evidence");
  if (pass.unknown.empty() && train_bytes.value_or(0) <= 0)
    pass.unknown = "no node says how large the training data is";
  pass.needed_bytes = train_bytes.value_or(0);
  if (train_samples.value_or(0) > 0 && phases.train_samples.has_value())
    pass.needed_bytes *= std::clamp(
        static_cast<double>(*phases.train_samples) / static_cast<double>(*train_samples), 0.0, 1.0);
  return pass;
}

}  // namespace assay::telemetry
