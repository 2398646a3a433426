// What tests of meters that are asked over a network share.

#ifndef TESTS_TELEMETRY_METER_SAMPLE_H_
#define TESTS_TELEMETRY_METER_SAMPLE_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "common/telemetry/energy.h"
#include "worker/agent/telemetry/source.h"

namespace assay::agent {

// One sample of such a meter; no value where it has none.
struct MeterSample {
  std::optional<int64_t> energy_uj;
  std::optional<int64_t> power_mw;
  std::optional<telemetry::MeterState> state;
};

inline MeterSample SampleOnce(TelemetrySource* meter) {
  std::vector<int64_t> values(meter->columns().size(), telemetry::kMissing);
  meter->Sample(values);
  MeterSample sample;
  if (values[0] != telemetry::kMissing) sample.energy_uj = values[0];
  if (values[1] != telemetry::kMissing) sample.power_mw = values[1];
  if (values[2] != telemetry::kMissing)
    sample.state = static_cast<telemetry::MeterState>(values[2]);
  return sample;
}

// Samples until the thread has answered, as it has a second later where nothing hangs.
inline MeterSample SampleAnswered(TelemetrySource* meter) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (;;) {
    const MeterSample sample = SampleOnce(meter);
    const bool is_answered =
        sample.state.has_value() && sample.state != telemetry::MeterState::kLate;
    if (is_answered || std::chrono::steady_clock::now() > deadline) return sample;
    std::this_thread::yield();
  }
}

}  // namespace assay::agent

#endif  // TESTS_TELEMETRY_METER_SAMPLE_H_
