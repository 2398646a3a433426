#include "worker/agent/telemetry/redfish_answer.h"

#include <cmath>
#include <cstdint>
#include <optional>

#include "nlohmann/json.hpp"

#include "common/json_document.h"

namespace assay::agent {
namespace {

using Json = nlohmann::json;

constexpr double kMicrojoulesPerJoule = 1e6;
constexpr double kMicrojoulesPerKwh = 3.6e12;
constexpr double kMilliwatts = 1e3;
constexpr double kScaledMax = 9e18;  // fits into 64 bits

std::optional<int64_t> Scaled(const Json& number, double scale) {
  if (!number.is_number()) return std::nullopt;
  const double scaled = number.get<double>() * scale;
  if (!(scaled >= 0 && scaled <= kScaledMax)) return std::nullopt;
  return std::llround(scaled);
}

// `resource`[name].Reading
std::optional<int64_t> Reading(const Json& resource, const char* name, double scale) {
  const auto sensor = resource.find(name);
  if (sensor == resource.end() || !sensor->is_object()) return std::nullopt;
  const auto reading = sensor->find("Reading");
  return reading == sensor->end() ? std::nullopt : Scaled(*reading, scale);
}

std::optional<int64_t> ConsumedMw(const Json& resource) {
  const auto controls = resource.find("PowerControl");
  if (controls == resource.end() || !controls->is_array()) return std::nullopt;
  for (const Json& control : *controls) {
    if (!control.is_object()) continue;
    const auto watts = control.find("PowerConsumedWatts");
    if (watts == control.end()) continue;
    if (const std::optional<int64_t> mw = Scaled(*watts, kMilliwatts)) return mw;
  }
  return std::nullopt;
}

}  // namespace

MeterAnswer ReadRedfishAnswer(absl::string_view body) {
  const Json resource = ParseJsonDocument<Json>(body);
  if (!resource.is_object())
    return {.state = telemetry::MeterState::kNoReading, .detail = "the answer is no JSON object"};
  MeterAnswer answer;
  answer.energy_uj = Reading(resource, "EnergyJoules", kMicrojoulesPerJoule);
  answer.power_mw = Reading(resource, "PowerWatts", kMilliwatts);
  if (!answer.power_mw.has_value()) answer.power_mw = ConsumedMw(resource);
  if (!answer.energy_uj.has_value() && !answer.power_mw.has_value())
    answer.energy_uj = Reading(resource, "EnergykWh", kMicrojoulesPerKwh);
  if (!answer.energy_uj.has_value() && !answer.power_mw.has_value())
    return {.state = telemetry::MeterState::kNoReading,
            .detail =
                "the resource has neither EnergyJoules, PowerWatts, EnergykWh nor "
                "PowerControl with a reading"};
  return answer;
}

}  // namespace assay::agent
