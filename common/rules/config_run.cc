#include "common/rules/config_run.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "common/json_reader.h"

namespace assay::rules {
namespace {

constexpr size_t kFoundLengthMax = 120;  // longer values are cut in findings

std::string Shown(const JsonValue& value) {
  std::string text = DumpJson(value);
  if (text.size() > kFoundLengthMax) text = text.substr(0, kFoundLengthMax) + "...";
  return text;
}

// Python's str.lower() for ASCII and the other letters of latin-1. `text` is UTF-8.
std::string PythonLower(absl::string_view text) {
  std::string lower = absl::AsciiStrToLower(text);
  for (size_t i = 0; i + 1 < lower.size(); ++i) {
    const auto byte = static_cast<uint8_t>(lower[i + 1]);
    if (lower[i] != '\xC3' || byte < 0x80 || byte > 0x9E || byte == 0x97) continue;
    lower[i + 1] = static_cast<char>(byte + 0x20);
  }
  return lower;
}

// A finding about a key, with all that the rule knows.
Finding ForRule(const KeyRule& rule, absl::string_view error_class) {
  return {.rule_id = rule.id,
          .error_class = absl::StrCat(error_class, ":", rule.key),
          .key = rule.key,
          .expected = Expectation(rule),
          .section = rule.section,
          .remedy = rule.remedy};
}

bool LooksAtMetadata(const Condition& condition) {
  return condition.kind == Condition::Kind::kMetadataHas ||
         condition.kind == Condition::Kind::kMetadataGreater;
}

// What the record had instead of what the condition wants.
std::string FoundFor(const Condition& condition, const Record& record, const State& state) {
  if (LooksAtMetadata(condition)) return Shown(record.metadata);
  if (condition.kind == Condition::Kind::kFlagSet) {
    return absl::StrCat("no ", FlagInWords(condition.flag), " before it");
  }
  if (condition.kind == Condition::Kind::kFlagClear) {
    return absl::StrCat(FlagInWords(condition.flag), " before it");
  }
  if (condition.kind == Condition::Kind::kInitWithin) {
    return absl::StrFormat("%.0f ms", record.time_ms - state.first_init_start_ms);
  }
  return Shown(record.value);
}

bool HasRepeats(const std::vector<Finding>& findings, const Finding& finding) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& other) {
    return other.error_class == finding.error_class;
  });
}

}  // namespace

ConfigRun::ConfigRun(const RuleSet* rules, int config) : rule_set_(rules), config_(config) {
  keys_.resize(this->rules().size());
  if (!rules->data().configs[static_cast<size_t>(config)].has_flags) return;
  state_.flags.fill(State::FlagState::kClear);
  state_[Flag::kStagingStarted] = State::FlagState::kUnknown;  // the reference forgets this one
}

const std::vector<KeyRule>& ConfigRun::rules() const {
  return rule_set_->data().configs[static_cast<size_t>(config_)].rules;
}

std::vector<Finding> ConfigRun::Add(const Record& record) {
  const KeyRule* rule = rule_set_->FindRule(config_, record.key);
  if (rule == nullptr || crash_) return {};
  KeyState& state = keys_[static_cast<size_t>(rule - rules().data())];
  std::vector<Finding> found;
  CountValue(*rule, record, &state, &found);
  if (!state.closed) CheckRecord(*rule, record, &state, &found);
  if (!CheckSomeLine(*rule, record, &state, &found)) return found;
  if (absl::StrContains(rule->key, "submission_")) state.closed = true;
  return found;
}

void ConfigRun::CountValue(const KeyRule& rule, const Record& record, KeyState* state,
                           std::vector<Finding>* found) {
  ++state->count;
  state->last_line = record.line;
  if (rule.occurrence != Occurrence::kExactlyOne) return;
  if (!state->first) {
    state->first = std::string(record.value_json);
    return;
  }
  // Equal text is an equal value, NaN included.
  if (state->difference || *state->first == record.value_json) return;
  if (const JsonValue first = BuildJson(*state->first); !PythonSame(first, record.value)) {
    Finding finding = ForRule(rule, "exactly_one_many_different");
    finding.line = record.line;
    finding.expected = absl::StrCat("one value; it was ", Shown(first));
    finding.found = Shown(record.value);
    state->difference = finding;
    found->push_back(std::move(finding));
  }
}

// Every check and then every effect runs, whatever the ones before said; the latest message stays.
void ConfigRun::CheckRecord(const KeyRule& rule, const Record& record, KeyState* state,
                            std::vector<Finding>* found) {
  std::optional<Finding> failure;
  for (const Condition& condition : rule.checks) {
    const Truth truth = Evaluate(condition, record, state_);
    if (truth == Truth::kTrue) continue;
    failure = ForRule(rule, truth == Truth::kError ? "check_error" : "check_failed");
    failure->line = record.line;
    failure->expected = Describe(condition);
    failure->found = FoundFor(condition, record, state_);
  }
  for (const Effect& effect : rule.effects) {
    if (Apply(effect, record)) continue;
    failure = ForRule(rule, "exec_error");
    failure->line = record.line;
    failure->found = Shown(record.value);
    break;
  }
  if (!failure) return;
  found->push_back(*failure);
  state->failure = std::move(failure);
}

bool ConfigRun::CheckSomeLine(const KeyRule& rule, const Record& record, KeyState* state,
                              std::vector<Finding>* found) {
  if (rule.some_line.empty()) return true;
  state->last = record.value;
  const Truth truth = EvaluateAll(rule.some_line, record, state_);
  if (truth == Truth::kTrue) ++state->successes;
  if (truth != Truth::kError) return true;
  crash_ = ForRule(rule, "crash");
  crash_->error_class = "crash:TypeError";
  crash_->line = record.line;
  crash_->expected = absl::StrCat("a number: ", DescribeAll(rule.some_line));
  crash_->found = Shown(record.value);
  found->push_back(*crash_);
  return false;
}

bool ConfigRun::Apply(const Effect& effect, const Record& record) {
  switch (effect.kind) {
    case Effect::Kind::kSetFlag:
      state_[effect.flag] = State::FlagState::kSet;
      return true;
    case Effect::Kind::kNoteInitStart:
      // Python's min keeps its first argument where the second is NaN.
      if (record.time_ms < state_.first_init_start_ms) state_.first_init_start_ms = record.time_ms;
      return true;
    case Effect::Kind::kEnqueue:
      break;
  }
  if (effect.only_if && !PythonEquals(record.value, *effect.only_if)) return true;
  std::string value = PythonStr(record.value);
  if (effect.lower_case) {
    if (record.value.AsString() == nullptr) return false;
    value = PythonLower(value);
  }
  Enqueue(absl::StrCat(effect.prefix, value, effect.suffix));
  return true;
}

// The reference would check a config as often as it is asked for. The last time is enough: it
// judges its keys afresh, and a config that may be asked for twice has no some_line to die on.
void ConfigRun::Enqueue(std::string name) {
  if (asked_for_unknown_) return;
  const auto known = std::find(enqueued_.begin(), enqueued_.end(), name);
  if (known != enqueued_.end()) {
    std::rotate(known, known + 1, enqueued_.end());
    return;
  }
  asked_for_unknown_ = rule_set_->ConfigNumber(name) < 0;
  enqueued_.push_back(std::move(name));
}

bool ConfigRun::Occurred(const std::string& key) const {
  const KeyRule* rule = rule_set_->FindRule(config_, rule_set_->KeyNumber(key));
  return rule != nullptr && keys_[static_cast<size_t>(rule - rules().data())].count > 0;
}

// None of the key and its alternatives occurred; said once for all rules about the same set.
void ConfigRun::FinishAlternatives(const KeyRule& rule, Outcome* outcome) const {
  std::set<std::string> names(rule.alternatives.begin(), rule.alternatives.end());
  names.insert(rule.key);
  for (const std::string& name : names) {
    if (Occurred(name)) return;
  }
  Finding finding = ForRule(rule, "missing_alternative");
  finding.error_class = absl::StrCat("missing_alternative:", absl::StrJoin(names, "|"));
  finding.expected = absl::StrCat("at least one of ", absl::StrJoin(names, ", "));
  finding.found = "none";
  if (!HasRepeats(outcome->final_findings, finding))
    outcome->final_findings.push_back(std::move(finding));
}

void ConfigRun::FinishRule(const KeyRule& rule, const KeyState& state, Outcome* outcome) const {
  std::optional<Finding> message = state.failure;
  const bool is_required =
      rule.occurrence == Occurrence::kExactlyOne || rule.occurrence == Occurrence::kAtLeastOne;
  if (is_required && state.count == 0) {
    message = ForRule(rule, "missing");
    message->expected = Demand(rule);
    message->found = "no such key";
  } else if (rule.occurrence == Occurrence::kExactlyOne && state.difference) {
    message = state.difference;
  } else if (rule.occurrence == Occurrence::kExactlyOne && state.count > 1) {
    Finding warning = ForRule(rule, "exactly_one_many");
    warning.severity = Severity::kWarning;
    warning.line = state.last_line;
    warning.expected = "once";
    warning.found = absl::StrCat(state.count, " times the same value");
    outcome->warnings.push_back(std::move(warning));
  } else if (rule.occurrence == Occurrence::kAtLeastOneOr) {
    FinishAlternatives(rule, outcome);
  }
  if (message) outcome->by_key.push_back(*std::move(message));
}

ConfigRun::Outcome ConfigRun::Finish() const {
  Outcome outcome;
  if (crash_) {
    for (const KeyState& state : keys_) {
      if (state.failure) outcome.by_key.push_back(*state.failure);
    }
    outcome.final_findings.push_back(*crash_);
    outcome.crashed = true;
    return outcome;
  }
  for (size_t i = 0; i < keys_.size(); ++i) {
    const KeyRule& rule = rules()[i];
    const KeyState& state = keys_[i];
    if (&rule != rule_set_->FindRule(config_, rule_set_->KeyNumber(rule.key))) continue;
    FinishRule(rule, state, &outcome);
    if (rule.some_line.empty() || state.count == 0 || state.successes > 0) continue;
    Finding finding = ForRule(rule, "no_line_passes");
    finding.line = state.last_line;
    finding.expected = absl::StrCat("a line with a value of ", DescribeAll(rule.some_line));
    finding.found =
        absl::StrCat("none of ", state.count, " lines; the last is ", Shown(state.last));
    outcome.final_findings.push_back(std::move(finding));
  }
  return outcome;
}

}  // namespace assay::rules
