#include "common/telemetry/energy.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

#include "common/json_value.h"
#include "common/mllog.h"
#include "common/telemetry/bytes.h"

namespace assay::telemetry {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr double kSeconds = 1e-9;
constexpr char kStatePrefix[] = "meter.";
// No node draws more: a counter that shows it was set back, and taken for one that began again.
constexpr double kNodeWattsMax = 50'000;

// Anybody may have made the file: later moments than these are none (36 years after the node was
// started, the year 2065).
constexpr int64_t kNodeNsMax = int64_t{1} << 60;
constexpr int64_t kWallUsMax = 3'000'000'000'000'000;

// The node's wall clock at a moment of its other clock: NodeNsAt turned around.
int64_t WallMsAt(const Header& header, int64_t node_ns) {
  return std::clamp<int64_t>(header.wall_us, 0, kWallUsMax) / 1000 +
         (node_ns - std::clamp<int64_t>(header.node_ns, 0, kNodeNsMax)) / kNsPerMs;
}

// The columns of one meter.
struct Meter {
  std::string name;
  bool is_check = false;
  bool is_counter = false;
  std::vector<size_t> columns;
};

double ScaleOf(absl::string_view unit) {
  if (absl::StartsWith(unit, "u")) return 1e-6;
  return absl::StartsWith(unit, "m") ? 1e-3 : 1;
}

std::optional<size_t> FindColumn(const Series& series, absl::string_view name) {
  const std::vector<Column>& columns = series.header.columns;
  for (size_t c = 0; c < columns.size(); ++c)
    if (columns[c].name == name) return c;
  return std::nullopt;
}

// "rapl" of "rapl.package-0", "node.cray" of itself.
std::string MeterName(absl::string_view name) {
  if (name == "node" || absl::StartsWith(name, "node.")) return std::string(name);
  return std::string(name.substr(0, name.find('.')));
}

bool HasValue(const std::vector<int64_t>& values) {
  return std::any_of(values.begin(), values.end(), [](int64_t value) { return value != kMissing; });
}

std::vector<Meter> MetersOf(const Series& series) {
  const std::vector<Column>& columns = series.header.columns;
  std::map<std::string, Meter> energies;
  std::map<std::string, Meter> powers;
  for (size_t c = 0; c < columns.size(); ++c) {
    absl::string_view name = columns[c].name;
    const bool is_check = absl::ConsumePrefix(&name, "check.");
    const bool is_energy = absl::ConsumePrefix(&name, "energy.") && columns[c].is_counter;
    const bool is_power = !is_energy && absl::ConsumePrefix(&name, "power.");
    if (!is_energy && !is_power) continue;
    const bool may_lack_values =
        is_check || FindColumn(series, absl::StrCat(kStatePrefix, name)).has_value();
    if (may_lack_values && !HasValue(series.columns[c]))
      continue;  // it counts no energy, or says nothing
    Meter& meter = (is_energy ? energies : powers)[MeterName(name)];
    meter.name = MeterName(name);
    meter.is_counter = is_energy;
    meter.is_check = is_check;
    if (name == "rapl.psys") meter.columns.clear();
    const bool is_in_psys =
        !meter.columns.empty() && absl::EndsWith(columns[meter.columns[0]].name, "rapl.psys");
    if (!is_in_psys) meter.columns.push_back(c);
  }
  energies.merge(powers);
  std::vector<Meter> meters;
  for (auto& [name, meter] : energies)
    meters.push_back(std::move(meter));
  return meters;
}

// A moment at which all parts of the meter were read.
struct Row {
  int64_t at_ns = 0;
  int64_t wall_ms = 0;
  size_t sample = 0;
};

std::vector<Row> RowsOf(const Series& series, const Meter& meter) {
  std::vector<Row> rows;
  for (size_t i = 0; i < series.at_ns.size(); ++i) {
    const bool is_whole =
        std::all_of(meter.columns.begin(), meter.columns.end(),
                    [&](size_t column) { return series.columns[column][i] != kMissing; });
    const int64_t at_ns = series.at_ns[i];
    if (!is_whole || at_ns < 0 || at_ns > kNodeNsMax) continue;
    const int64_t wall_ms = WallMsAt(series.header, at_ns);
    // A power log has whole milliseconds.
    if (rows.empty() || wall_ms > rows.back().wall_ms) rows.push_back({at_ns, wall_ms, i});
  }
  return rows;
}

class OneMeter {
 public:
  OneMeter(const Series& series, const Meter& meter, const RunSpan& span)
      : series_(series),
        meter_(meter),
        span_(span),
        rows_(RowsOf(series, meter)),
        state_(FindColumn(series, kStatePrefix + meter.name)) {
    power_.meter = meter.name;
    power_.is_check = meter.is_check;
    power_.is_node = meter.name == "node" || absl::StartsWith(meter.name, "node.");
    for (const Comparison& comparison : series.header.comparisons) {
      if (comparison.meter != meter.name || power_.is_node) continue;
      power_.is_node = true;
      power_.compared_with = comparison.with;
    }
  }

  // nullopt without two samples.
  std::optional<MeterPower> Read() {
    const auto [first, last] = Window();
    if (first >= last) return std::nullopt;
    power_.begin_wall_ms = rows_[first].wall_ms;
    NoteGap(span_.begin_ns, std::min(rows_[first].at_ns, span_.end_ns));
    for (size_t i = first + 1; i <= last; ++i)
      AddInterval(rows_[i - 1], rows_[i]);
    NoteGap(std::max(rows_[last].at_ns, span_.begin_ns), span_.end_ns);
    AddEnds(rows_[first], rows_[last]);
    return std::move(power_);
  }

 private:
  // From the last row before the run to the first behind it.
  std::pair<size_t, size_t> Window() const {
    size_t first = 0;
    size_t last = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].at_ns <= span_.begin_ns - span_.uncertainty_ns) first = i;
      last = i;
      if (rows_[i].at_ns >= span_.end_ns + span_.uncertainty_ns) break;
    }
    return {first, last};
  }

  void NoteGap(int64_t from_ns, int64_t to_ns) {
    const double gap_s = static_cast<double>(to_ns - from_ns) * kSeconds;
    if (gap_s <= power_.longest_gap_s) return;
    power_.longest_gap_s = gap_s;
    power_.gap_at_s = static_cast<double>(from_ns - span_.begin_ns) * kSeconds;
    power_.gap_why = WhyNotRead(from_ns, to_ns);
  }

  // What its state was at the first sample between these that it did not answer.
  std::string WhyNotRead(int64_t from_ns, int64_t to_ns) const {
    if (!state_.has_value()) return "";
    for (size_t i = 0; i < series_.at_ns.size(); ++i) {
      const int64_t state = series_.columns[*state_][i];
      if (series_.at_ns[i] < from_ns || series_.at_ns[i] > to_ns || state == kMissing) continue;
      if (state != static_cast<int64_t>(MeterState::kReads))
        return ToText(static_cast<MeterState>(state));
    }
    return "";
  }

  double Watts(const Row& row) const {
    double watts = 0;
    for (const size_t column : meter_.columns)
      watts += static_cast<double>(series_.columns[column][row.sample]) *
               ScaleOf(series_.header.columns[column].unit);
    return watts;
  }

  // nullopt if a part was set back.
  std::optional<double> Joules(const Row& from, const Row& to) const {
    double joules = 0;
    for (const size_t column : meter_.columns) {
      const std::vector<int64_t>& values = series_.columns[column];
      const double grown =
          static_cast<double>(values[to.sample]) - static_cast<double>(values[from.sample]);
      if (grown < 0) return std::nullopt;
      joules += grown * ScaleOf(series_.header.columns[column].unit);
    }
    return joules;
  }

  // The part of the interval that lies in the run, which is taken to be shorter by `less_ns` at
  // both ends; in seconds.
  double Overlap(const Row& from, const Row& to, int64_t less_ns) const {
    const int64_t begin = std::max(from.at_ns, span_.begin_ns + less_ns);
    const int64_t end = std::min(to.at_ns, span_.end_ns - less_ns);
    return static_cast<double>(std::max<int64_t>(0, end - begin)) * kSeconds;
  }

  void AddInterval(const Row& from, const Row& to) {
    NoteGap(from.at_ns, to.at_ns);
    const double passed_s = static_cast<double>(to.at_ns - from.at_ns) * kSeconds;
    const double wide_s = Overlap(from, to, -span_.uncertainty_ns);
    const double narrow_s = Overlap(from, to, span_.uncertainty_ns);
    double watts = Watts(to);
    if (meter_.is_counter) {
      const std::optional<double> joules = Joules(from, to);
      if (!joules.has_value()) return Break(from, "it was set back");
      watts = *joules / (static_cast<double>(to.wall_ms - from.wall_ms) / 1000);
      if (narrow_s >= passed_s) power_.low_j += *joules;
      if (wide_s > 0) power_.high_j += *joules;
    } else {
      power_.low_j += std::min(Watts(from), watts) * narrow_s;
      power_.high_j += std::max(Watts(from), watts) * wide_s;
    }
    if (!(watts >= 0 && watts <= kNodeWattsMax))
      return Break(from, absl::StrFormat("it showed %.0f W, as one does that was set back", watts));
    power_.readings.push_back({to.wall_ms, std::round(watts * 1000) / 1000});
  }

  void Break(const Row& at, absl::string_view why) {
    if (power_.problem.empty())
      power_.problem = absl::StrFormat("%s at %.0f s", why,
                                       static_cast<double>(at.at_ns - span_.begin_ns) * kSeconds);
  }

  // What no row lies before or behind.
  void AddEnds(const Row& first, const Row& last) {
    const int64_t missed_ns = std::max<int64_t>(0, first.at_ns - span_.begin_ns) +
                              std::max<int64_t>(0, span_.end_ns - last.at_ns);
    const double missed_s = static_cast<double>(missed_ns) * kSeconds;
    if (missed_s > kPowerGapMaxS && power_.problem.empty())
      power_.problem =
          absl::StrFormat("it was not read for %.1f s at the ends of the run", missed_s);
    double highest = 0;
    for (const PowerReading& reading : power_.readings)
      highest = std::max(highest, reading.watts);
    power_.high_j += missed_s * highest;
  }

  const Series& series_;
  const Meter& meter_;
  const RunSpan span_;
  const std::vector<Row> rows_;
  const std::optional<size_t> state_;  // the column that says how it stands with the meter
  MeterPower power_;
};

int RankOf(const MeterPower& power, bool is_counter) {
  if (power.is_check) return 4;
  if (!power.is_node) return 3;
  if (!power.compared_with.empty()) return 2;
  return is_counter ? 0 : 1;
}

// Cray measures behind the power supply; what else shows the node's power, before it.
const char* MeasurementType(absl::string_view meter) {
  return meter == "node.cray" ? "DC" : "AC";
}

// Records of MLLOG, one a line.
class LogText {
 public:
  explicit LogText(const std::string& file) : file_(file) {}

  void Add(int64_t wall_ms, const char* key, JsonValue value, JsonObject metadata,
           MllogEventType type = MllogEventType::kPointInTime) {
    absl::StrAppend(&text_,
                    FormatMllog({.time_ms = wall_ms,
                                 .event_type = type,
                                 .key = key,
                                 .value = std::move(value),
                                 .file = file_,
                                 .lineno = ++line_,
                                 .metadata = std::move(metadata)}),
                    "\n");
  }
  std::string text() && { return std::move(text_); }

 private:
  const std::string file_;
  std::string text_;
  int line_ = 0;
};

}  // namespace

const char* ToText(MeterState state) {
  switch (state) {
    case MeterState::kReads:
      return "it reads";
    case MeterState::kLate:
      return "it does not answer in time";
    case MeterState::kUnreachable:
      return "it cannot be reached";
    case MeterState::kUnverified:
      return "its certificate cannot be verified";
    case MeterState::kRefused:
      return "it refuses the credentials";
    case MeterState::kNoReading:
      return "it answers without a reading";
    case MeterState::kStandsStill:
      return "it stands still";
    case MeterState::kNoCredentials:
      return "the agent cannot read its credentials";
  }
  return "nobody knows why";
}

std::vector<std::string> SilentMeters(const Series& series) {
  std::vector<std::string> silent;
  const std::vector<Column>& columns = series.header.columns;
  for (size_t c = 0; c < columns.size(); ++c) {
    absl::string_view name = columns[c].name;
    if (!absl::ConsumePrefix(&name, kStatePrefix)) continue;
    const auto said_nothing = [&](absl::string_view kind) {
      const std::optional<size_t> column = FindColumn(series, absl::StrCat(kind, name));
      return !column.has_value() || !HasValue(series.columns[*column]);
    };
    if (!said_nothing("energy.") || !said_nothing("power.")) continue;
    const auto last = std::find_if(series.columns[c].rbegin(), series.columns[c].rend(),
                                   [](int64_t value) { return value != kMissing; });
    const auto state =
        last == series.columns[c].rend() ? MeterState::kLate : static_cast<MeterState>(*last);
    silent.push_back(absl::StrCat(name, ": ", ToText(state)));
  }
  return silent;
}

RunSpan SpanOf(const Header& header, int64_t run_start_ms, int64_t run_stop_ms) {
  return {.begin_ns = NodeNsAt(header, run_start_ms), .end_ns = NodeNsAt(header, run_stop_ms)};
}

double MeterPower::EnergyJ(double run_s) const {
  double sum = 0;
  int64_t previous_ms = begin_wall_ms;
  for (const PowerReading& reading : readings) {
    sum += reading.watts * static_cast<double>(reading.wall_ms - previous_ms);
    previous_ms = reading.wall_ms;
  }
  return previous_ms > begin_wall_ms
             ? sum / static_cast<double>(previous_ms - begin_wall_ms) * run_s
             : 0;
}

std::vector<MeterPower> MeterPowers(const Series& series, const RunSpan& span) {
  std::vector<std::pair<int, MeterPower>> ranked;
  for (const Meter& meter : MetersOf(series)) {
    std::optional<MeterPower> power = OneMeter(series, meter, span).Read();
    if (!power.has_value()) continue;
    const int rank = RankOf(*power, meter.is_counter);
    ranked.emplace_back(rank, *std::move(power));
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<MeterPower> powers;
  for (auto& [rank, power] : ranked)
    powers.push_back(std::move(power));
  return powers;
}

std::string PowerLog(const MeterPower& power, absl::string_view host) {
  LogText log(power.meter);
  JsonObject how = {{"measurement_type", MeasurementType(power.meter)}, {"meter", power.meter}};
  if (!power.compared_with.empty()) how.emplace_back("compared_with", power.compared_with);
  const JsonObject where = {{"host", host}};
  log.Add(power.begin_wall_ms, "power_measurement_start", {}, {}, MllogEventType::kIntervalStart);
  log.Add(power.begin_wall_ms, "conversion_eff", 1, std::move(how));
  for (const PowerReading& reading : power.readings)
    log.Add(reading.wall_ms, "power_reading", reading.watts, where);
  const int64_t end_ms =
      power.readings.empty() ? power.begin_wall_ms : power.readings.back().wall_ms;
  log.Add(end_ms, "power_measurement_stop", {}, {}, MllogEventType::kIntervalEnd);
  return std::move(log).text();
}

std::string SwitchLog(absl::string_view name, double watts, int64_t wall_ms) {
  LogText log("switches");
  log.Add(wall_ms, "conversion_eff", 1,
          {{"measurement_type", "AC"}, {"meter", "none: its maximum rating"}});
  log.Add(wall_ms, "interconnect_power_est", watts, {{"host", name}});
  return std::move(log).text();
}

}  // namespace assay::telemetry
