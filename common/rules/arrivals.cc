#include "common/rules/arrivals.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include "common/json_reader.h"

namespace assay::rules {
namespace {

constexpr const char* kTimingKeys[] = {"init_start", "staging_start", "staging_stop", "run_start",
                                       "run_stop"};
constexpr double kClockSetMinMs = 1;  // readings of two clocks are no further apart

constexpr char kArrivalSection[] = "Assay, the log and when it came";
constexpr TextRule kArrivalRules[] = {
    {"R-TIM-031", "",
     "records that are stamped when they are written: at most 2 ms after they arrive on the node "
     "and at most 5 s before",
     kArrivalSection,
     "stamp each record by the node's own clock when what it says happens, write it at once and "
     "flush the line"},
    {"R-TIM-032", "", "records that are stamped at most 1 s before they arrive on the node",
     kArrivalSection,
     "write each record at once and flush the line: no buffer between program and log"},
    {"R-TIM-033", "run_start", "arrivals of the log's records, witnessed by the node",
     kArrivalSection, "the step's log (step_0.log) says what failed"},
    {"R-TIM-034", "", "a log that is appended to and never changed", kArrivalSection,
     "open the log (ASSAY_LOG) for appending; keep other output out of it"},
};

Finding FindingOf(absl::string_view rule, const TimedRecord& record, std::string found) {
  Finding finding = Violation(FindRule(kArrivalRules, rule), absl::StrCat("arrival:", record.key),
                              std::move(found));
  finding.key = record.key;
  finding.line = record.line;
  return finding;
}

Finding Warning(Finding finding) {
  finding.severity = Severity::kWarning;
  return finding;
}

bool IsSameRecord(const TimedRecord& a, const TimedRecord& b) {
  return a.key == b.key && a.time_ms == b.time_ms;
}

std::optional<double> NumberOf(const JsonValue& object, absl::string_view name) {
  const JsonValue* const member = object.Find(name);
  return member == nullptr ? std::nullopt : member->ToDouble();
}

double MsOf(int64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

enum class Fault { kNone, kBuffered, kForged };  // as of a record that waited in a buffer, or worse

// `passed_ms` after its stamp a record came, of which it may have been there for `late_ms` already.
// Not "<": a stamp that is no number is wrong, too.
Fault FaultOf(double passed_ms, double late_ms) {
  if (!(passed_ms >= -kFutureToleranceMs)) return Fault::kForged;
  if (passed_ms <= kLateWarningMs + late_ms) return Fault::kNone;
  return passed_ms <= kLateToleranceMs + late_ms ? Fault::kBuffered : Fault::kForged;
}

double PassedMs(const Arrival& arrival) {
  return static_cast<double>(arrival.wall_us) / 1000 - arrival.record.time_ms;
}

double LateMs(const Arrival& arrival) {
  return MsOf(std::max<int64_t>(arrival.late_ns, 0));
}

// By how much the wall clock was set between the two, if it was.
double ClockSetMs(const Arrival& from, const Arrival& to) {
  const double set_ms =
      static_cast<double>(to.wall_us - from.wall_us) / 1000 - MsOf(to.mono_ns - from.mono_ns);
  return std::fabs(set_ms) > kClockSetMinMs ? set_ms : 0;
}

// The clock may have been set before the record was stamped, or after.
Fault FaultOf(const Arrival& arrival, double clock_set_ms) {
  const double late_ms = LateMs(arrival);
  const double passed_ms = PassedMs(arrival);
  return std::min(FaultOf(passed_ms, late_ms), FaultOf(passed_ms - clock_set_ms, late_ms));
}

std::string FoundOf(absl::string_view what, double passed_ms) {
  return absl::StrFormat("%s stamped %.3f s %s it arrived on the node", what,
                         std::fabs(passed_ms) / 1000, passed_ms < 0 ? "after" : "before");
}

std::vector<Finding> CheckStamps(const std::vector<Arrival>& arrivals) {
  std::vector<Finding> findings;
  const Arrival* worst = nullptr;  // of those that do not time the run
  size_t stray_count = 0;
  for (size_t i = 0; i < arrivals.size(); ++i) {
    const Arrival& arrival = arrivals[i];
    const Fault fault = FaultOf(arrival, i == 0 ? 0 : ClockSetMs(arrivals[i - 1], arrival));
    if (fault == Fault::kNone) continue;
    if (!arrival.record.TimesTheRun()) {
      ++stray_count;
      if (worst == nullptr || std::fabs(PassedMs(arrival)) > std::fabs(PassedMs(*worst)))
        worst = &arrival;
      continue;
    }
    const std::string found = FoundOf(arrival.record.key, PassedMs(arrival));
    findings.push_back(fault == Fault::kForged
                           ? FindingOf("R-TIM-031", arrival.record, found)
                           : Warning(FindingOf("R-TIM-032", arrival.record, found)));
  }
  if (worst != nullptr)
    findings.push_back(Warning(
        FindingOf("R-TIM-032", worst->record,
                  absl::StrCat(stray_count, stray_count < kStrayArrivalsMax ? "" : " or more",
                               " records that do not time the run; the worst of them ",
                               FoundOf("is", PassedMs(*worst))))));
  return findings;
}

}  // namespace

std::span<const TextRule> ArrivalRules() {
  return kArrivalRules;
}

std::optional<TimedRecord> ReadTimedRecord(absl::string_view line, int64_t line_number) {
  const MllogLine read = ReadMllogLine(line);
  if (read.outcome != MllogOutcome::kRecord) return std::nullopt;
  std::string storage;
  const absl::string_view key = MllogKey(read, &storage);
  const bool times_the_run =
      std::find(std::begin(kTimingKeys), std::end(kTimingKeys), key) != std::end(kTimingKeys);
  return TimedRecord{times_the_run ? std::string(key) : "", line_number,
                     std::isfinite(read.time_ms) ? read.time_ms : 0};
}

bool IsStampedRight(const Arrival& arrival) {
  return FaultOf(PassedMs(arrival), LateMs(arrival)) == Fault::kNone;
}

void TimedLog::Add(absl::string_view bytes) {
  lines_.Add(bytes,
             [this](absl::string_view line, bool is_too_long) { TakeLine(line, is_too_long); });
}

std::vector<TimedRecord> TimedLog::Finish() {
  lines_.End([this](absl::string_view line, bool is_too_long) { TakeLine(line, is_too_long); });
  return std::move(records_);
}

void TimedLog::TakeLine(absl::string_view line, bool is_too_long) {
  ++line_;
  if (is_too_long || records_.size() >= kArrivalsMax) return;
  std::optional<TimedRecord> record = ReadTimedRecord(line, line_);
  if (record.has_value() && record->TimesTheRun()) records_.push_back(*std::move(record));
}

std::vector<Finding> CheckArrivals(const std::vector<Arrival>& arrivals,
                                   const std::vector<TimedRecord>& logged) {
  std::vector<TimedRecord> arrived;
  for (const Arrival& arrival : arrivals)
    if (arrival.record.TimesTheRun()) arrived.push_back(arrival.record);
  std::vector<Finding> findings;
  for (size_t i = 0; i < logged.size(); ++i) {
    if (i < arrived.size() && IsSameRecord(logged[i], arrived[i])) continue;
    findings.push_back(
        FindingOf("R-TIM-034", logged[i], "a record that did not arrive so on the node"));
    break;  // those after it only follow from it
  }
  if (findings.empty() && arrived.size() > logged.size()) {
    TimedRecord lost = arrived[logged.size()];
    lost.line = 0;
    findings.push_back(FindingOf("R-TIM-034", lost, "a record that arrived and is not in the log"));
  }
  for (Finding& finding : CheckStamps(arrivals))
    findings.push_back(std::move(finding));
  return findings;
}

Finding NoArrivals() {
  return Warning(FindingOf("R-TIM-033", {.key = "run_start"}, "none"));
}

std::string ArrivalsText(const std::vector<Arrival>& arrivals) {
  std::string text;
  for (const Arrival& arrival : arrivals) {
    AppendJson(JsonValue(JsonObject{{"key", arrival.record.key},
                                    {"line", arrival.record.line},
                                    {"time_ms", arrival.record.time_ms},
                                    {"wall_us", arrival.wall_us},
                                    {"mono_ns", arrival.mono_ns},
                                    {"raw_ns", arrival.raw_ns},
                                    {"boot_ns", arrival.boot_ns},
                                    {"late_ns", arrival.late_ns}}),
               &text);
    text += "\n";
  }
  return text;
}

std::vector<Arrival> ReadArrivals(absl::string_view text) {
  std::vector<Arrival> arrivals;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const JsonResult parsed = ParseJson(line);
    if (parsed.error != JsonError::kNone) continue;
    const auto integer = [&parsed](absl::string_view name) {
      const JsonValue* const member = parsed.value.Find(name);
      return member == nullptr ? int64_t{0} : member->AsInt64().value_or(0);
    };
    const JsonValue* const key = parsed.value.Find("key");
    const std::optional<double> time_ms = NumberOf(parsed.value, "time_ms");
    if (key == nullptr || key->AsString() == nullptr || !time_ms) continue;
    arrivals.push_back({{*key->AsString(), integer("line"), *time_ms},
                        integer("wall_us"),
                        integer("mono_ns"),
                        integer("raw_ns"),
                        integer("boot_ns"),
                        integer("late_ns")});
  }
  return arrivals;
}

}  // namespace assay::rules
