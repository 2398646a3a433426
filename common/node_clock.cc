#include "common/node_clock.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/json_reader.h"
#include "common/json_value.h"

namespace assay {
namespace {

constexpr int64_t kWorstToBest = 4;
constexpr int64_t kGoodUs = 10'000;
constexpr double kSlewRateMax = 600e-6;
constexpr int64_t kNsPerUs = 1000;
constexpr int64_t kNsPerMs = 1'000'000;

// What no clock shows: 18 years since a node was started, and an hour from asking to the reply.
// Sums and differences of a few of these are numbers still.
constexpr int64_t kClockNsMax = int64_t{1} << 59;
constexpr int64_t kUncertaintyUsMax = 3'600'000'000;
// A coordinator is seldom started anew, or elsewhere, while a run goes on.
constexpr size_t kBootsMax = 8;

bool IsWithin(int64_t value, int64_t low, int64_t high) {
  return value >= low && value <= high;
}

bool IsSane(const ClockSample& sample) {
  constexpr int64_t kUsMax = kClockNsMax / kNsPerUs;
  return IsWithin(sample.node_ns, 0, kClockNsMax) && IsWithin(sample.mono_ns, 0, kClockNsMax) &&
         IsWithin(sample.offset_us, -kUsMax, kUsMax) &&
         IsWithin(sample.uncertainty_us, 1, kUncertaintyUsMax);
}

}  // namespace

std::string ClockSamplesName(int node) {
  return node == 0 ? "offsets.jsonl" : absl::StrCat("offsets_", node, ".jsonl");
}

std::string ClockSampleText(const ClockSample& sample) {
  return absl::StrCat(DumpJson(JsonValue(JsonObject{{"boot_id", sample.boot_id},
                                                    {"wall_us", sample.wall_us},
                                                    {"node_ns", sample.node_ns},
                                                    {"mono_ns", sample.mono_ns},
                                                    {"offset_us", sample.offset_us},
                                                    {"uncertainty_us", sample.uncertainty_us}})),
                      "\n");
}

std::vector<ClockSample> ReadClockSamples(absl::string_view text) {
  std::vector<ClockSample> samples;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const JsonResult parsed = ParseJson(line);
    if (parsed.error != JsonError::kNone) continue;
    const auto integer = [&parsed](absl::string_view name) -> std::optional<int64_t> {
      const JsonValue* const member = parsed.value.Find(name);
      return member == nullptr ? std::nullopt : member->AsInt64();
    };
    const JsonValue* const boot_id = parsed.value.Find("boot_id");
    const std::optional<int64_t> offset_us = integer("offset_us");
    const std::optional<int64_t> uncertainty_us = integer("uncertainty_us");
    if (boot_id == nullptr || boot_id->AsString() == nullptr || !offset_us || !uncertainty_us)
      continue;
    ClockSample sample{.boot_id = *boot_id->AsString(),
                       .wall_us = integer("wall_us").value_or(0),
                       .node_ns = integer("node_ns").value_or(0),
                       .mono_ns = integer("mono_ns").value_or(0),
                       .offset_us = *offset_us,
                       .uncertainty_us = *uncertainty_us};
    if (IsSane(sample)) samples.push_back(std::move(sample));
  }
  return samples;
}

std::vector<ClockSample> GoodClockSamples(std::vector<ClockSample> samples) {
  int64_t least_us = std::numeric_limits<int64_t>::max() / kWorstToBest;
  for (const ClockSample& sample : samples)
    least_us = std::min(least_us, sample.uncertainty_us);
  const int64_t limit_us = std::max(least_us * kWorstToBest, kGoodUs);
  std::erase_if(samples, [limit_us](const ClockSample& s) { return s.uncertainty_us > limit_us; });
  return samples;
}

void NodeClock::Add(const Pair& pair, Pairs* pairs) {
  if (pairs->empty() || (pair.from_ns > pairs->back().from_ns && pair.to_ns > pairs->back().to_ns))
    pairs->push_back(pair);
}

CarriedTime NodeClock::Carry(const Pairs& pairs, int64_t from_ns) {
  from_ns = std::clamp(from_ns, -kClockNsMax, kClockNsMax);
  const auto next =
      std::upper_bound(pairs.begin(), pairs.end(), from_ns,
                       [](int64_t at_ns, const Pair& pair) { return at_ns < pair.from_ns; });
  if (next == pairs.begin() || next == pairs.end()) {
    const Pair& nearest = next == pairs.begin() ? pairs.front() : pairs.back();
    const int64_t away_ns = from_ns - nearest.from_ns;
    const auto gained_ns =
        static_cast<int64_t>(std::fabs(static_cast<double>(away_ns)) * kSlewRateMax);
    return {nearest.to_ns + away_ns, nearest.error_ns + gained_ns};
  }
  const Pair& before = *std::prev(next);
  const int64_t passed_ns = next->from_ns - before.from_ns;
  const int64_t gained_ns = (next->to_ns - before.to_ns) - passed_ns;
  const int64_t away_ns = from_ns - before.from_ns;
  const double share = static_cast<double>(away_ns) / static_cast<double>(passed_ns);
  return {before.to_ns + away_ns + std::llround(static_cast<double>(gained_ns) * share),
          std::max(before.error_ns, next->error_ns) + std::abs(gained_ns)};
}

std::map<std::string, NodeClock::Pairs> NodeClock::ToCoordinators(
    const std::vector<ClockSample>& samples) {
  std::map<std::string, Pairs> by_boot;
  for (const ClockSample& sample : samples)
    if (by_boot.size() < kBootsMax || by_boot.contains(sample.boot_id))
      Add({sample.node_ns, sample.node_ns - sample.offset_us * kNsPerUs,
           sample.uncertainty_us * kNsPerUs},
          &by_boot[sample.boot_id]);
  return by_boot;
}

std::optional<NodeClock> NodeClock::Of(const LogStart& start,
                                       const std::vector<ClockSample>& node_zero,
                                       const std::vector<ClockSample>& node) {
  NodeClock clock(start);
  const std::vector<ClockSample> own = GoodClockSamples(node);
  std::map<std::string, Pairs> of_zero = ToCoordinators(GoodClockSamples(node_zero));
  std::map<std::string, Pairs> of_node = ToCoordinators(own);
  for (auto& [boot_id, pairs] : of_node) {
    const auto zero = of_zero.find(boot_id);
    if (zero == of_zero.end()) continue;
    for (Pair& pair : zero->second)
      std::swap(pair.from_ns, pair.to_ns);
    clock.bridges_.push_back({std::move(pairs), std::move(zero->second)});
  }
  if (clock.bridges_.empty()) return std::nullopt;
  for (const ClockSample& sample : own)
    if (sample.mono_ns != 0) Add({sample.mono_ns, sample.node_ns, 0}, &clock.mono_to_node_);
  return clock;
}

CarriedTime NodeClock::AtNodeZero(int64_t node_ns) const {
  std::optional<CarriedTime> best;
  for (const Bridge& bridge : bridges_) {
    const CarriedTime there = Carry(bridge.to_coordinator, node_ns);
    CarriedTime carried = Carry(bridge.to_node_zero, there.at_ns);
    carried.error_ns += there.error_ns;
    if (!best.has_value() || carried.error_ns < best->error_ns) best = carried;
  }
  return best.value_or(CarriedTime{node_ns, 0});
}

std::optional<CarriedTime> NodeClock::ByLog(int64_t mono_ns) const {
  if (mono_to_node_.empty() || mono_ns <= 0) return std::nullopt;
  const CarriedTime of_node = Carry(mono_to_node_, mono_ns);
  CarriedTime carried = AtNodeZero(of_node.at_ns);
  carried.at_ns += start_.run_start_ms * kNsPerMs - start_.node_ns;
  carried.error_ns += of_node.error_ns;
  return carried;
}

}  // namespace assay
