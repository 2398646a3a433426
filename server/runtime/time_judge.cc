#include "server/runtime/time_judge.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

#include "common/node_clock.h"
#include "common/rules/run_clocks.h"
#include "common/rules/witnessed_time.h"
#include "server/runtime/evidence_file.h"

namespace assay::runtime {
namespace {

std::optional<std::string> TextOf(absl::string_view name, const core::Run& run,
                                  const store::ArtifactStore& artifacts) {
  return EvidenceOf(name, kClockSamplesBytesMax, run, artifacts);
}

// What a node that lies about its clocks can write is kept within what can be stored.
int64_t Rounded(double value) {
  constexpr double kMax = 1e15;
  return std::llround(std::clamp(value, -kMax, kMax));
}

}  // namespace

std::optional<std::vector<rules::Arrival>> ArrivalsOf(const core::Run& run,
                                                      const store::ArtifactStore& artifacts) {
  const std::optional<std::string> text = TextOf(rules::kArrivalsName, run, artifacts);
  if (!text.has_value()) return std::nullopt;
  return rules::ReadArrivals(*text);
}

void JudgeStamps(const std::vector<rules::Arrival>& arrivals,
                 const std::vector<rules::TimedRecord>& logged, core::RunFacts* facts) {
  for (core::Finding& finding : rules::CheckArrivals(arrivals, logged)) {
    if (finding.severity == core::Severity::kError) facts->is_compliant = false;
    facts->findings.push_back(std::move(finding));
  }
}

void JudgeTime(const core::Run& run, const std::vector<rules::Arrival>& arrivals,
               const store::ArtifactStore& artifacts, core::RunFacts* facts) {
  const std::vector<ClockSample> samples =
      ReadClockSamples(TextOf(ClockSamplesName(0), run, artifacts).value_or(""));
  const std::optional<rules::WitnessedTime> time = rules::TimeOf(arrivals, samples);
  if (!time.has_value()) return;
  facts->arrival_run_ms = Rounded(time->node_ms);
  facts->time_error_us = Rounded(time->error_ms * 1e3);
  if (time->coordinator.has_value()) {
    facts->coordinator_run_ms = Rounded(time->coordinator->run_ms);
    facts->coordinator_error_us = Rounded(time->coordinator->error_ms * 1e3);
  }
  for (core::Finding& finding : rules::CheckTimes(*time, arrivals, samples))
    facts->findings.push_back(std::move(finding));
}

}  // namespace assay::runtime
