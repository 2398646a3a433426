#include "common/telemetry/run_phases.h"

#include <cmath>
#include <utility>

#include "absl/strings/match.h"

#include "common/json_reader.h"
#include "common/json_value.h"

namespace assay::telemetry {
namespace {

// More than any log has; what a hostile one repeats beyond it is left out.
constexpr size_t kIntervalsMax = 100'000;

std::optional<int64_t> IntegerOf(absl::string_view json) {
  const JsonResult parsed = ParseJson(json);
  if (parsed.error != JsonError::kNone) return std::nullopt;
  return parsed.value.AsInt64();
}

int64_t CacheBytesOf(absl::string_view metadata) {
  if (!absl::StrContains(metadata, "cache_hit_bytes")) return 0;
  const JsonResult parsed = ParseJson(metadata);
  if (parsed.error != JsonError::kNone) return 0;
  const JsonValue* const bytes = parsed.value.Find("cache_hit_bytes");
  const std::optional<int64_t> count = bytes == nullptr ? std::nullopt : bytes->AsInt64();
  return std::max<int64_t>(count.value_or(0), 0);
}

void Close(std::optional<int64_t>* begin_ms, int64_t end_ms, std::vector<Interval>* intervals) {
  if (begin_ms->has_value() && intervals->size() < kIntervalsMax)
    intervals->push_back({**begin_ms, end_ms});
  begin_ms->reset();
}

}  // namespace

void PhaseReader::Add(absl::string_view bytes) {
  lines_.Add(bytes, [this](absl::string_view line, bool) { Take(line); });
}

RunPhases PhaseReader::Finish() {
  lines_.End([this](absl::string_view line, bool) { Take(line); });
  return std::move(phases_);
}

void PhaseReader::Take(absl::string_view line) {
  constexpr double kTimeMax = 1e15;
  const MllogLine record = ReadMllogLine(line);
  if (record.outcome != MllogOutcome::kRecord || !(std::abs(record.time_ms) < kTimeMax)) return;
  std::string storage;
  const absl::string_view key = MllogKey(record, &storage);
  TakeEnds(key, static_cast<int64_t>(record.time_ms));
  if (key == "train_samples" && !phases_.train_samples.has_value())
    phases_.train_samples = IntegerOf(record.value_json);
  if (key == "staging_start" || key == "staging_stop")
    phases_.declared_cache_bytes += CacheBytesOf(record.metadata_json);
}

void PhaseReader::TakeEnds(absl::string_view key, int64_t time_ms) {
  if (phases_.run_stop_ms.has_value()) return;
  if (key == "run_start") phases_.run_start_ms = time_ms;
  if (key == "run_stop" && phases_.run_start_ms.has_value()) phases_.run_stop_ms = time_ms;
  if (key == "init_start") open_.init = time_ms;
  if (key == "init_stop") Close(&open_.init, time_ms, &phases_.init);
  if (key == "staging_start") open_.staging = time_ms;
  if (key == "staging_stop") Close(&open_.staging, time_ms, &phases_.staging);
  if (key == "epoch_start") open_.epoch = time_ms;
  if (key == "epoch_stop") Close(&open_.epoch, time_ms, &phases_.epochs);
  if (key == "eval_start") open_.evaluation = time_ms;
  if (key == "eval_stop") Close(&open_.evaluation, time_ms, &phases_.evaluations);
}

RunPhases PhasesOf(absl::string_view log) {
  PhaseReader reader;
  reader.Add(log);
  return reader.Finish();
}

}  // namespace assay::telemetry
