#include "common/client/run_bytes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/client/artifacts.h"
#include "common/client/cache_records.h"
#include "common/client/export.h"
#include "common/client/ids.h"
#include "common/client/pages.h"
#include "common/client/run_telemetry.h"
#include "common/status.h"
#include "common/telemetry/bytes.h"
#include "common/telemetry/first_pass.h"

namespace assay::client {
namespace {

// Sums over the nodes; a node that does not know makes the sum unknown.
struct PhaseSum {
  telemetry::PhaseBytes of_all;
  bool is_begun = false;
};

void Add(const std::optional<double>& bytes, bool is_begun, std::optional<double>* sum) {
  if (!is_begun) {
    *sum = bytes;
  } else if (bytes.has_value() && sum->has_value()) {
    **sum += *bytes;
  } else {
    sum->reset();
  }
}

Json PhaseJson(const telemetry::PhaseBytes& part, std::optional<double> train_bytes) {
  Json json{{"phase", part.phase}, {"seconds", part.seconds}};
  const auto add = [&json](const char* name, std::optional<double> bytes) {
    if (bytes.has_value()) json[name] = std::llround(*bytes);
  };
  const std::optional<double> storage = part.read.FromStorage();
  add("storage_bytes", storage);
  if (storage.has_value() && train_bytes.value_or(0) > 0)
    json["of_train_data"] = *storage / *train_bytes;
  add("run_bytes", part.read.run);
  add("disk_bytes", part.read.disks);
  add("server_bytes", part.read.servers);
  add("network_bytes", part.read.network);
  return json;
}

Json FirstPassJson(const telemetry::FirstPass& pass) {
  if (!pass.unknown.empty()) return {{"is_known", false}, {"why", pass.unknown}};
  return {{"is_known", true},
          {"train_bytes", std::llround(pass.needed_bytes)},
          {"storage_bytes", std::llround(pass.storage_bytes)},
          {"declared_cache_bytes", std::llround(pass.declared_bytes)},
          {"network_bytes", std::llround(pass.network_bytes)},
          {"is_cold_proven", pass.is_cold_proven},
          {"of_train_data", pass.Share().value_or(0)}};
}

// By the number of the node.
std::map<int, std::string> CachesByNode(const Json& caches) {
  std::map<int, std::string> texts;
  for (const Json& record : caches)
    texts[record.value("node", 0)] = record.dump();
  return texts;
}

Json MakeBytes(const telemetry::RunPhases& phases, const std::vector<NodeTelemetry>& nodes,
               const std::map<int, std::string>& caches, int node_count,
               std::optional<int64_t> train_samples) {
  std::vector<telemetry::NodePass> passes;
  Json rows = Json::array();
  std::vector<PhaseSum> sums;
  for (const auto& [node, series, clock, foreign] : nodes) {
    const auto record = caches.find(node);
    passes.push_back(
        telemetry::NodePassOf(node, phases, &series, record == caches.end() ? "" : record->second));
    const std::vector<telemetry::PhaseBytes> parts =
        telemetry::BytesByPhase(telemetry::NodeBytes(&series), phases);
    sums.resize(std::max(sums.size(), parts.size()));
    for (size_t i = 0; i < parts.size(); ++i) {
      Json row = PhaseJson(parts[i], std::nullopt);
      row["node"] = node;
      rows.push_back(std::move(row));
      telemetry::BytesRead* const sum = &sums[i].of_all.read;
      const bool is_begun = std::exchange(sums[i].is_begun, true);
      sums[i].of_all.phase = parts[i].phase;
      sums[i].of_all.seconds = std::max(sums[i].of_all.seconds, parts[i].seconds);
      Add(parts[i].read.run, is_begun, &sum->run);
      Add(parts[i].read.disks, is_begun, &sum->disks);
      Add(parts[i].read.servers, is_begun, &sum->servers);
      Add(parts[i].read.network, is_begun, &sum->network);
    }
  }
  const telemetry::FirstPass pass =
      telemetry::FirstPassOf(phases, passes, node_count, train_samples);
  Json all = Json::array();
  for (const PhaseSum& sum : sums)
    all.push_back(PhaseJson(sum.of_all, pass.needed_bytes));
  if (nodes.size() > 1)
    for (Json& row : rows)
      all.push_back(std::move(row));
  return {{"first_pass", FirstPassJson(pass)}, {"phases", std::move(all)}};
}

// Of the run's dataset, as the verdict on the run counts them; nullopt where it is not registered
// any more, or is not for this user to see.
absl::StatusOr<std::optional<int64_t>> TrainSamplesOf(const Client& client, const v1::Run& run) {
  ASSIGN_OR_RETURN(const v1::Submission entry, GetEntry(client, ShortId(run.submission())));
  const absl::StatusOr<v1::ListDatasetsResponse> known = client.Call(v1::ListDatasetsRequest());
  if (absl::IsPermissionDenied(known.status())) return std::nullopt;
  RETURN_IF_ERROR(known.status());
  for (const v1::Dataset& dataset : known->datasets())
    if (ShortId(dataset.name()) == entry.spec().dataset()) return dataset.train_sample_count();
  return std::nullopt;
}

}  // namespace

absl::StatusOr<telemetry::RunPhases> RunPhasesOf(const Client& client, const v1::Run& run) {
  const v1::ArtifactRef* const log = ResultFile(run);
  if (log == nullptr)
    return absl::NotFoundError(
        absl::StrCat(ShortId(run.name()), " has left no result file: it has not ended"));
  ASSIGN_OR_RETURN(const std::string text, DownloadArtifact(client, *log));
  return telemetry::PhasesOf(text);
}

absl::StatusOr<Json> BytesOf(const Client& client, const v1::Run& run) {
  ASSIGN_OR_RETURN(const std::vector<NodeTelemetry> nodes, TelemetryOf(client, run));
  if (nodes.empty() || ResultFile(run) == nullptr) return Json();
  ASSIGN_OR_RETURN(const telemetry::RunPhases phases, RunPhasesOf(client, run));
  ASSIGN_OR_RETURN(const Json caches, CachesOf(client, run));
  const int node_count = std::max(run.workers_size(), static_cast<int>(nodes.size()));
  ASSIGN_OR_RETURN(const std::optional<int64_t> train_samples, TrainSamplesOf(client, run));
  return MakeBytes(phases, nodes, CachesByNode(caches), node_count, train_samples);
}

}  // namespace assay::client
