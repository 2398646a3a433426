#include "common/rules/program_log.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include "common/json_reader.h"
#include "common/rules/benchmark_settings.h"
#include "common/rules/text_rule.h"

namespace assay::rules {
namespace {

constexpr size_t kShownMax = 200;  // bytes of a value in a finding
constexpr const char* kTimedKeys[] = {"init_start", "staging_start", "staging_stop", "run_start",
                                      "run_stop"};

constexpr char kProgramLogSection[] = "Assay, external programs: the log";
constexpr char kArrivalSection[] = "Assay, external programs: time";
constexpr TextRule kProgramLogRules[] = {
    {"R-TIM-031", "",
     "records that are stamped when they are written: at most 10 ms after they "
     "arrive on the node and at most 5 s before",
     kArrivalSection, "log each record when what it says happens, and write it at once"},
    {"R-TIM-032", "", "records that are stamped at most 1 s before they arrive on the node",
     kArrivalSection, "write each record at once, without a buffer"},
    {"R-TIM-033", "run_start", "arrivals of the log's records, witnessed by the node",
     kArrivalSection, "the step's log (step_0.log) says what failed"},
    {"R-TIM-034", "", "a log that is appended to and never changed", kArrivalSection,
     "open ASSAY_LOG for appending; keep other output out of it"},
    {"R-WRK-021", "", "the identity of the submission", kProgramLogSection,
     "log ASSAY_ORGANIZATION, _SYSTEM, _BENCHMARK, _DIVISION and _STATUS as they are"},
    {"R-WRK-022", "seed", "the seed that was issued for the run", kProgramLogSection,
     "log ASSAY_SEED as seed, and draw all random numbers from it"},
    {"R-WRK-023", "number_of_nodes", "the number of the run's nodes", kProgramLogSection,
     "log ASSAY_NODE_COUNT as number_of_nodes"},
    {"R-WRK-024", "", "the dataset's numbers of samples", kProgramLogSection,
     "log ASSAY_TRAIN_SAMPLES as train_samples and ASSAY_EVAL_SAMPLES as eval_samples"},
    {"R-WRK-025", "", "the submission's hyperparameters", kProgramLogSection,
     "log and use the values of the file that ASSAY_HYPERPARAMETERS names"},
    {"R-WRK-026", "", "no hyperparameter that the submission does not have", kProgramLogSection,
     "write it into [hyperparameters] of the submission"},
    {"R-WRK-027", "", "one log: that of node 0, where the submission says that it is written",
     kProgramLogSection,
     "log on rank 0 only, to ASSAY_LOG or, with log = \"stdout\", to the output"},
};

std::string ShownValue(absl::string_view json) {
  return std::string(json.substr(0, kShownMax));
}

bool IsKnownHyperparameter(absl::string_view key) {
  static const auto* const kKeys = new std::vector<std::string>(KnownHyperparameters());
  return std::find(kKeys->begin(), kKeys->end(), key) != kKeys->end();
}

Finding FindingOf(absl::string_view rule, absl::string_view key, int64_t line, std::string expected,
                  std::string found) {
  Finding finding = Violation(FindRule(kProgramLogRules, rule), absl::StrCat("program_log:", key),
                              std::move(found));
  finding.key = std::string(key);
  finding.line = line;
  if (!expected.empty()) finding.expected = std::move(expected);
  return finding;
}

std::string SecondsText(double ms) {
  return absl::StrFormat("%.3f s", ms / 1000);
}

bool IsTimedKey(absl::string_view key) {
  return std::find(std::begin(kTimedKeys), std::end(kTimedKeys), key) != std::end(kTimedKeys);
}

bool IsSameRecord(const TimedRecord& a, const TimedRecord& b) {
  return a.key == b.key && a.time_ms == b.time_ms;
}

std::optional<double> NumberOf(const JsonValue& object, absl::string_view name) {
  const JsonValue* const member = object.Find(name);
  return member == nullptr ? std::nullopt : member->ToDouble();
}

}  // namespace

std::span<const TextRule> ProgramLogRules() {
  return kProgramLogRules;
}

ProgramLogCheck::ProgramLogCheck(const LoggedFacts& facts) {
  const std::pair<const char*, const std::string&> identity[] = {
      {"submission_org", facts.organization},
      {"submission_platform", facts.system},
      {"submission_benchmark", facts.benchmark},
      {"submission_division", facts.division},
      {"submission_status", facts.status}};
  for (const auto& [key, value] : identity)
    expected_[key] = {"R-WRK-021", JsonValue(value)};
  expected_["seed"] = {"R-WRK-022", JsonValue(facts.seed)};
  expected_["number_of_nodes"] = {"R-WRK-023", JsonValue(facts.node_count)};
  if (facts.train_samples)
    expected_["train_samples"] = {"R-WRK-024", JsonValue(*facts.train_samples)};
  if (facts.eval_samples) expected_["eval_samples"] = {"R-WRK-024", JsonValue(*facts.eval_samples)};
  for (const auto& [key, value] : facts.hyperparameters)
    expected_[key] = {"R-WRK-025", value};
}

void ProgramLogCheck::Add(absl::string_view bytes) {
  lines_.Add(bytes,
             [this](absl::string_view line, bool is_too_long) { TakeLine(line, is_too_long); });
}

void ProgramLogCheck::TakeLine(absl::string_view line, bool is_too_long) {
  ++line_;
  if (is_too_long) return;
  const MllogLine record = ReadMllogLine(line);
  if (record.outcome != MllogOutcome::kRecord) return;
  std::string storage;
  const std::string key(MllogKey(record, &storage));
  std::optional<TimedRecord> timed = ReadTimedRecord(line, line_);
  if (timed && timed_.size() < kArrivalsMax) timed_.push_back(*std::move(timed));
  const auto expected = expected_.find(key);
  if (expected == expected_.end()) {
    if (IsKnownHyperparameter(key) && !unknown_.contains(key))
      unknown_[key] = FindingOf("R-WRK-026", key, line_, "", ShownValue(record.value_json));
    return;
  }
  Expected& value = expected->second;
  value.is_seen = true;
  const JsonResult logged = ParseJson(record.value_json);
  const bool is_same = logged.error == JsonError::kNone && PythonEquals(logged.value, value.value);
  if (!is_same && !value.finding)
    value.finding =
        FindingOf(value.rule, key, line_, DumpJson(value.value), ShownValue(record.value_json));
}

std::vector<Finding> ProgramLogCheck::Finish() {
  lines_.End([this](absl::string_view line, bool is_too_long) { TakeLine(line, is_too_long); });
  std::vector<Finding> findings;
  for (auto& [key, value] : expected_) {
    if (value.finding) findings.push_back(*std::move(value.finding));
    if (!value.is_seen)
      findings.push_back(FindingOf(value.rule, key, 0, DumpJson(value.value), "not logged"));
  }
  for (auto& [key, finding] : unknown_) {
    finding.severity = Severity::kWarning;
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::optional<TimedRecord> ReadTimedRecord(absl::string_view line, int64_t line_number) {
  const MllogLine read = ReadMllogLine(line);
  if (read.outcome != MllogOutcome::kRecord) return std::nullopt;
  std::string storage;
  const std::string key(MllogKey(read, &storage));
  if (!IsTimedKey(key)) return std::nullopt;
  return TimedRecord{key, line_number, std::isfinite(read.time_ms) ? read.time_ms : 0};
}

std::vector<Finding> CheckArrivals(const std::vector<Arrival>& arrivals,
                                   const std::vector<TimedRecord>& logged) {
  std::vector<Finding> findings;
  for (size_t i = 0; i < logged.size(); ++i) {
    if (i < arrivals.size() && IsSameRecord(logged[i], arrivals[i].record)) continue;
    findings.push_back(FindingOf("R-TIM-034", logged[i].key, logged[i].line, "",
                                 "a record that did not arrive so on the node"));
    break;  // those after it only follow from it
  }
  if (findings.empty() && arrivals.size() > logged.size()) {
    const TimedRecord& lost = arrivals[logged.size()].record;
    findings.push_back(
        FindingOf("R-TIM-034", lost.key, 0, "", "a record that arrived and is not in the log"));
  }
  for (const Arrival& arrival : arrivals) {
    const TimedRecord& record = arrival.record;
    const double late_ms = static_cast<double>(arrival.wall_us) / 1000 - record.time_ms;
    // Not "<": a stamp that is no number is wrong, too.
    const bool is_right = late_ms >= -kFutureToleranceMs && late_ms <= kLateToleranceMs;
    if (is_right && late_ms <= kLateWarningMs) continue;
    Finding finding =
        FindingOf(is_right ? "R-TIM-032" : "R-TIM-031", record.key, record.line, "",
                  absl::StrCat(record.key, " stamped ", SecondsText(std::fabs(late_ms)),
                               late_ms < 0 ? " after" : " before", " it arrived on the node"));
    if (is_right) finding.severity = Severity::kWarning;
    findings.push_back(std::move(finding));
  }
  return findings;
}

Finding NoArrivals() {
  Finding finding = FindingOf("R-TIM-033", "run_start", 0, "", "none");
  finding.severity = Severity::kWarning;
  return finding;
}

Finding LoggedElsewhere(absl::string_view file, int64_t size_bytes) {
  Finding finding =
      FindingOf("R-WRK-027", "", 0, "", absl::StrCat(file, ", ", size_bytes, " bytes"));
  finding.severity = Severity::kWarning;
  return finding;
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
