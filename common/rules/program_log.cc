#include "common/rules/program_log.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/json_reader.h"
#include "common/rules/benchmark_settings.h"
#include "common/rules/text_rule.h"

namespace assay::rules {
namespace {

constexpr size_t kShownMax = 200;  // bytes of a value in a finding

constexpr char kProgramLogSection[] = "Assay, external programs: the log";
constexpr TextRule kProgramLogRules[] = {
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

Finding LoggedElsewhere(absl::string_view file, int64_t size_bytes) {
  Finding finding =
      FindingOf("R-WRK-027", "", 0, "", absl::StrCat(file, ", ", size_bytes, " bytes"));
  finding.severity = Severity::kWarning;
  return finding;
}

}  // namespace assay::rules
