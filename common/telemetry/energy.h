// What the meters of a node say of a run: its energy, and the power log that MLPerf asks for. Pure
// functions of their arguments.
//
// A column is a meter's by its name: energy.METER.PART, a counter in uJ, or power.METER.PART in mW.
// Of the whole node are the meters node.NAME, and others that the operator has compared (Header).
// The parts of a meter add up, but for RAPL's psys, which holds the others. Power that stands
// beside a counter of energy that was read says nothing that this does not. A column meter.METER
// says how it stands with a meter that is asked over a network (MeterState). Columns whose names
// begin with check. are of what others say of the whole node: compared, and no meters.

#ifndef COMMON_TELEMETRY_ENERGY_H_
#define COMMON_TELEMETRY_ENERGY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/telemetry/series.h"

namespace assay::telemetry {

// How it stood with a meter when it was asked.
enum class MeterState : int64_t {
  kReads = 0,
  kLate = 1,           // no answer in time
  kUnreachable = 2,    // nobody there to ask
  kUnverified = 3,     // its certificate is not that of who it should be
  kRefused = 4,        // it does not take the credentials
  kNoReading = 5,      // it answers something else
  kStandsStill = 6,    // it repeats itself
  kNoCredentials = 7,  // the node cannot read what it should show
};
const char* ToText(MeterState state);

// Of the run by the node's clock.
struct RunSpan {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  // How far both may be off because the clock that stamped them is another node's; 0 on that node.
  int64_t uncertainty_ns = 0;
};

// The run that began and ended at these times of the node's wall clock.
RunSpan SpanOf(const Header& header, int64_t run_start_ms, int64_t run_stop_ms);

// The mean power since the reading before it; of the first: since power_measurement_start.
struct PowerReading {
  int64_t wall_ms = 0;
  double watts = 0;
  bool operator==(const PowerReading&) const = default;
};

// One meter over a run: from its last sample before to its first sample after.
struct MeterPower {
  std::string meter;          // node.cray, rapl, gpu
  bool is_node = false;       // of the whole node, as a power entry needs it
  bool is_check = false;      // somebody else's figure of the whole node: no power entry, no sum
  std::string compared_with;  // where it is so because the operator compared it: with what
  int64_t begin_wall_ms = 0;  // the first sample
  std::vector<PowerReading> readings;
  // The longest time of the run without a reading, and the seconds from run_start to where it
  // begins.
  double longest_gap_s = 0;
  double gap_at_s = 0;
  std::string gap_why;  // by the meter's state when it began; empty: nobody knows
  // Why its energy is not known: it was set back, or not read at the run's ends. Empty: it is
  // known.
  std::string problem;
  // Between these its energy over the run lies; what the meter itself is off by is not in it.
  double low_j = 0;
  double high_j = 0;

  // The mean power times the run's length, as the official tool has it.
  double EnergyJ(double run_s) const;
};

// Of each meter that has two samples, whole nodes first, and of these the one to be trusted first.
std::vector<MeterPower> MeterPowers(const Series& series, const RunSpan& span);

// Meters that were asked and said nothing in the whole series, with the reason: "node.redfish: the
// controller refuses the credentials".
std::vector<std::string> SilentMeters(const Series& series);

// What keeps a reading from being a power entry (HPC rules: evenly, once a second, 60 times).
inline constexpr double kPowerGapMaxS = 1.5;
inline constexpr size_t kPowerReadingsMin = 60;

// MLPerf's power log of a node: node_<j>.txt. `host` names the node.
std::string PowerLog(const MeterPower& power, absl::string_view host);

// That of a switch whose power is estimated by its maximum rating: sw_<k>.txt.
std::string SwitchLog(absl::string_view name, double watts, int64_t wall_ms);

}  // namespace assay::telemetry

#endif  // COMMON_TELEMETRY_ENERGY_H_
