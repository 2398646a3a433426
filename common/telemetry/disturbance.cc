#include "common/telemetry/disturbance.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

#include "common/telemetry/summary.h"

namespace assay::telemetry {
namespace {

constexpr int64_t kPageBytes = 4096;
constexpr double kUsPerSecond = 1e6;
// Of nvmlClocksThrottleReasons (nvml.h): HwSlowdown, SwThermalSlowdown, HwThermalSlowdown,
// HwPowerBrakeSlowdown.
constexpr int64_t kGpuLimits = 0x08 | 0x20 | 0x40 | 0x80;
constexpr int64_t kLeapBits = 0x10 | 0x20;  // STA_INS, STA_DEL of adjtimex(2)

const Figure* Find(const std::vector<Figure>& figures, absl::string_view name) {
  const auto found = std::find_if(figures.begin(), figures.end(),
                                  [name](const Figure& figure) { return figure.name == name; });
  return found == figures.end() ? nullptr : &*found;
}

// Of the samples, in which share one of `bits` was set.
double ShareWith(int64_t bits, const std::vector<int64_t>& values,
                 const std::vector<int64_t>& at_ns, int64_t begin_ns, int64_t end_ns) {
  int64_t known = 0;
  int64_t set = 0;
  for (size_t i = 0; i < at_ns.size(); ++i) {
    if (at_ns[i] < begin_ns || at_ns[i] > end_ns || values[i] == kMissing) continue;
    ++known;
    if ((values[i] & bits) != 0) ++set;
  }
  return known == 0 ? 0 : static_cast<double>(set) / static_cast<double>(known);
}

void AddOthers(const Series& series, const std::vector<Figure>& figures, int64_t begin_ns,
               int64_t end_ns, std::vector<std::string>* notes) {
  const Quiet quiet = QuietOf(figures);
  if (quiet.others.value_or(0) > kOthersShare)
    notes->push_back(absl::StrFormat("others used %.1f %% of the processors", *quiet.others * 100));
  const std::optional<Minute> worst = WorstMinute(series, begin_ns, end_ns);
  if (worst.has_value() && worst->others > kOthersMinuteShare)
    notes->push_back(absl::StrFormat("others used %.1f %% of the processors in one minute",
                                     worst->others * 100));
  if (quiet.stolen.value_or(0) > kStolenShare)
    notes->push_back(
        absl::StrFormat("the host of this virtual machine took %.1f %% of its processor time",
                        *quiet.stolen * 100));
}

void AddMemory(const std::vector<Figure>& figures, std::vector<std::string>* notes) {
  const Figure* const swapped = Find(figures, "paging.swapped_in");
  const double bytes = swapped == nullptr ? 0 : swapped->total.value_or(0) * kPageBytes;
  if (bytes >= static_cast<double>(kSwappedInBytes))
    notes->push_back(absl::StrFormat("%.1f MiB were read back from swap", bytes / (1 << 20)));
  const Figure* const waited = Find(figures, "pressure.memory.some");
  const double share = waited == nullptr ? 0 : waited->mean / kUsPerSecond;
  if (share > kMemoryWaitShare)
    notes->push_back(
        absl::StrFormat("some process waited for memory in %.1f %% of the time", share * 100));
}

void AddHeat(const Series& series, const std::vector<Figure>& figures, int64_t begin_ns,
             int64_t end_ns, std::vector<std::string>* notes) {
  const Figure* const throttled = Find(figures, "cpu.throttled");
  if (throttled != nullptr && throttled->total.value_or(0) > 0)
    notes->push_back(absl::StrFormat("heat held processors down %.0f times", *throttled->total));
  for (size_t c = 0; c < series.columns.size(); ++c) {
    const absl::string_view name = series.header.columns[c].name;
    if (!absl::StartsWith(name, "gpu.") || !absl::EndsWith(name, ".throttle_reasons")) continue;
    const double share = ShareWith(kGpuLimits, series.columns[c], series.at_ns, begin_ns, end_ns);
    if (share > kGpuLimitedShare)
      notes->push_back(
          absl::StrFormat("heat or a brake held the clocks of %s down in %.1f %% of "
                          "its samples",
                          name.substr(0, name.rfind('.')), share * 100));
  }
}

// Before the end of its day; the second itself shows as a step of the wall clock (R-CLK-001).
void AddLeap(const Series& series, int64_t begin_ns, int64_t end_ns,
             std::vector<std::string>* notes) {
  for (size_t c = 0; c < series.columns.size(); ++c)
    if (series.header.columns[c].name == "clock.status" &&
        ShareWith(kLeapBits, series.columns[c], series.at_ns, begin_ns, end_ns) > 0)
      notes->push_back("the clock had been told of a leap second at the end of its day");
}

}  // namespace

std::vector<std::string> DisturbancesOf(const Series& series, int64_t begin_ns, int64_t end_ns) {
  const std::vector<Figure> figures = Summarize(series, begin_ns, end_ns);
  std::vector<std::string> notes;
  AddOthers(series, figures, begin_ns, end_ns, &notes);
  AddMemory(figures, &notes);
  AddHeat(series, figures, begin_ns, end_ns, &notes);
  AddLeap(series, begin_ns, end_ns, &notes);
  return notes;
}

}  // namespace assay::telemetry
