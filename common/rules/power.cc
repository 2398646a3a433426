#include "common/rules/power.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/json_reader.h"
#include "common/mllog.h"
#include "common/status.h"

namespace assay::rules {
namespace {

constexpr double kMsPerSecond = 1000;

struct PowerRecord {
  double time_ms = 0;
  std::string key;
  JsonValue value;
};

std::vector<PowerRecord> ReadRecords(absl::string_view log) {
  std::vector<PowerRecord> records;
  MllogLines lines(log);
  for (absl::string_view text; lines.Next(&text);) {
    const MllogLine line = ReadMllogLine(text);
    if (line.outcome != MllogOutcome::kRecord) continue;
    std::string storage;
    const absl::string_view key = MllogKey(line, &storage);
    if (key.data() == nullptr) continue;
    records.push_back(
        {.time_ms = line.time_ms, .key = std::string(key), .value = BuildJson(line.value_json)});
  }
  std::stable_sort(records.begin(), records.end(), [](const PowerRecord& a, const PowerRecord& b) {
    return a.time_ms < b.time_ms;
  });
  return records;
}

absl::StatusOr<double> NumberOf(const PowerRecord& record) {
  const std::optional<double> number = record.value.ToDouble();
  if (!number) {
    return absl::InvalidArgumentError(absl::StrCat("the power log's ", record.key, " is ",
                                                   PythonStr(record.value), ", no number"));
  }
  return *number;
}

}  // namespace

absl::StatusOr<double> NodeEnergy(absl::string_view log, double time_to_train_ms) {
  std::optional<double> start_ms, stop_ms;
  double efficiency = 1;
  double previous_ms = 0;
  double sum = 0;  // of power times milliseconds
  bool has_reading = false;
  for (const PowerRecord& record : ReadRecords(log)) {
    if (record.key == "power_measurement_start") {
      start_ms = previous_ms = record.time_ms;
    } else if (record.key == "power_measurement_stop") {
      stop_ms = record.time_ms;
    } else if (record.key == "conversion_eff") {
      ASSIGN_OR_RETURN(efficiency, NumberOf(record));
    } else if (record.key == "power_reading" && start_ms && !stop_ms) {
      ASSIGN_OR_RETURN(const double power, NumberOf(record));
      sum += power * (record.time_ms - previous_ms);
      previous_ms = record.time_ms;
      has_reading = true;
    }
  }
  if (!start_ms) return absl::InvalidArgumentError("the power log has no power_measurement_start");
  const double measured_ms = stop_ms.value_or(previous_ms) - *start_ms;
  if (!(measured_ms > 0) || !has_reading) {
    return absl::InvalidArgumentError(
        "the power log has no power_reading after power_measurement_start");
  }
  return sum / measured_ms * time_to_train_ms * efficiency / kMsPerSecond;
}

absl::StatusOr<double> SwitchEnergy(absl::string_view log, double time_to_train_ms) {
  double efficiency = 1;
  for (const PowerRecord& record : ReadRecords(log)) {
    if (record.key == "conversion_eff") {
      ASSIGN_OR_RETURN(efficiency, NumberOf(record));
    } else if (record.key == "interconnect_power_est") {
      ASSIGN_OR_RETURN(const double power, NumberOf(record));
      return power * efficiency * time_to_train_ms / kMsPerSecond;
    }
  }
  return absl::InvalidArgumentError("the power log has no interconnect_power_est");
}

std::optional<double> ScoredEnergy(const TimeToSolution& time,
                                   std::span<const std::optional<double>> energies,
                                   double scaling_factor) {
  if (!time.minutes || time.counted.empty()) return std::nullopt;
  double sum = 0;
  for (const int position : time.counted) {
    const auto index = static_cast<size_t>(position);
    if (index >= energies.size() || !energies[index]) return std::nullopt;
    sum += *energies[index];
  }
  return sum / static_cast<double>(time.counted.size()) * scaling_factor;
}

}  // namespace assay::rules
