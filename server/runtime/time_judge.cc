#include "server/runtime/time_judge.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/log.h"

namespace assay::runtime {
namespace {

constexpr char kArrivalsFile[] = "arrivals.jsonl";
constexpr char kOffsetsFile[] = "offsets.jsonl";
constexpr int64_t kFileBytesMax = 4 << 20;

std::optional<std::string> TextOf(absl::string_view name, const core::Run& run,
                                  const store::ArtifactStore& artifacts) {
  const auto found =
      std::find_if(run.artifacts.begin(), run.artifacts.end(),
                   [name](const core::ArtifactRef& file) { return file.file_name == name; });
  if (found == run.artifacts.end() || found->size_bytes > kFileBytesMax) return std::nullopt;
  std::string text;
  const absl::Status read = artifacts.ReadVerified(
      found->sha256, [&text](absl::string_view piece) { absl::StrAppend(&text, piece); });
  if (read.ok()) return text;
  LOG(ERROR) << "run=" << run.id << " is judged without its " << name << ": " << read;
  return std::nullopt;
}

// What a node that lies about its clocks can write is kept within what can be stored.
int64_t Rounded(double value) {
  constexpr double kMax = 1e15;
  return std::llround(std::clamp(value, -kMax, kMax));
}

}  // namespace

std::optional<std::vector<rules::Arrival>> ArrivalsOf(const core::Run& run,
                                                      const store::ArtifactStore& artifacts) {
  const std::optional<std::string> text = TextOf(kArrivalsFile, run, artifacts);
  if (!text.has_value()) return std::nullopt;
  return rules::ReadArrivals(*text);
}

void JudgeTime(const core::Run& run, const std::vector<rules::Arrival>& arrivals,
               const store::ArtifactStore& artifacts, core::RunFacts* facts) {
  const std::vector<rules::ClockSample> samples =
      rules::ReadClockSamples(TextOf(kOffsetsFile, run, artifacts).value_or(""));
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
